// The page of somebody without a token: where to get one.

import { useSignal } from "@preact/signals";
import { enter, refusal } from "../session.ts";

export function SignIn() {
  const code = useSignal("");
  return (
    <main class="sign-in">
      <h1>hyperhive</h1>
      <p>
        This page needs a link of its own. Run <code>hive-c0re link</code> on the host and open what it
        prints, or paste its code here. Each link works once.
      </p>
      {refusal.value !== undefined && <p class="refusal" role="alert">{refusal.value}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const typed = code.value.trim();
          void enter(typed.includes("#code=") ? (typed.split("#code=")[1] ?? "") : typed);
        }}
      >
        <label>
          Code or link
          <input
            autoFocus
            autocomplete="off"
            spellcheck={false}
            value={code.value}
            onInput={(event) => (code.value = event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="action primary" disabled={code.value.trim() === ""}>
          Open the hive
        </button>
      </form>
    </main>
  );
}
