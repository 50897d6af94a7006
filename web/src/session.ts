// Who looks at the page: somebody with a token, or nobody yet.

import { signal } from "@preact/signals";
import { tell } from "./ui/toasts.tsx";
import { ApiError, dropToken, keepToken, post, token, whenRefused } from "./api/client.ts";

export type Session = "asking" | "in" | "out";

export const session = signal<Session>("asking");
/** Why the last attempt did not work. */
export const refusal = signal<string | undefined>(undefined);

whenRefused(() => leave("The token is not good any more."));

/** Takes the one-time code behind `#code=` out of the address and exchanges it. */
export async function begin(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) {
    history.replaceState(null, "", location.pathname);
    await enter(code);
    return;
  }
  session.value = token() === null ? "out" : "in";
}

export async function enter(code: string): Promise<void> {
  try {
    const { token: held } = await post<{ token: string }>("/api/login", { code: code.trim() });
    keepToken(held);
    refusal.value = undefined;
    session.value = "in";
  } catch (error) {
    refusal.value = error instanceof ApiError ? error.message : "The host does not answer.";
    session.value = token() === null ? "out" : "in";
    // Whoever is in already keeps their session, and is told why the link did nothing.
    if (session.value === "in") tell(refusal.value);
  }
}

export function leave(why?: string): void {
  dropToken();
  refusal.value = why;
  session.value = "out";
}
