// What needs the operator now: each item with its own address, `j` and `k` to go through them.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Action } from "../ui/action.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { typing } from "../ui/palette.tsx";
import { hive } from "./api.ts";
import { ApprovalCard } from "./approval.tsx";
import { type Item, items } from "./items.ts";
import { LetterCard } from "./letter.tsx";
import { MailCard } from "./mail-card.tsx";
import { QuestionCard } from "./question.tsx";
import { route } from "../ui/route.ts";
import { agents, refresh } from "./store.ts";
import { TroubleCard } from "./trouble.tsx";

/** What is on the page at once; the rest is behind a button. */
const SHOWN = 50;

function Card({ item }: { item: Item }) {
  switch (item.kind) {
    case "approval":
      return <ApprovalCard approval={item.approval} />;
    case "question":
      return <QuestionCard question={item.question} />;
    case "agent":
      return <TroubleCard agent={item.agent} />;
    case "letter":
      return <LetterCard letter={item.letter} />;
    case "mail":
      return <MailCard mail={item.mail} />;
  }
}

const BAD = new Set(["agent", "letter"]);

/** Moves the focus to the next item in a direction. */
function step(by: 1 | -1): void {
  const cards = [...document.querySelectorAll<HTMLElement>("li.card[id]")];
  const here = cards.findIndex((card) => card.contains(document.activeElement));
  const next = cards[here < 0 ? 0 : Math.min(cards.length - 1, Math.max(0, here + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** Presses the button of the focused item that this key stands for. */
function press(key: string): boolean {
  const card = document.activeElement?.closest("li.card[id]");
  const button = card?.querySelector<HTMLElement>(`[data-key="${key}"]`);
  button?.focus();
  button?.click();
  return button !== null && button !== undefined;
}

export function Attention() {
  const most = useSignal(SHOWN);
  const all = items.value;
  const mail = all.flatMap((item) => (item.kind === "mail" ? [item.mail.id] : []));
  useEffect(() => {
    function key(event: KeyboardEvent): void {
      if (typing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "j") step(1);
      else if (event.key === "k") step(-1);
      else if (/^[adc]$/.test(event.key) && press(event.key)) event.preventDefault();
    }
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  // A link to one item brings it to the reader.
  const wanted = route.value.startsWith("item/") ? route.value.slice("item/".length) : undefined;
  const found = all.some((item) => item.id === wanted);
  useEffect(() => {
    if (wanted === undefined) return;
    const card = document.getElementById(`item-${wanted}`);
    card?.focus();
    card?.scrollIntoView({ block: "center" });
  }, [wanted, found]);

  return (
    <section class="panel" aria-label="What needs you">
      <h2>
        Needs you <span class="dim">{all.length === 0 ? "" : all.length}</span>
        {mail.length > 1 && (
          <Action
            class="small"
            confirm={`Take all ${mail.length} messages out of this list? They stay under Messages.`}
            run={async () => {
              await hive.ack(mail);
              refresh("inbox", "state");
            }}
          >
            Done with all mail
          </Action>
        )}
      </h2>
      {wanted !== undefined && !found && agents.value !== undefined && (
        <p class="dim" role="status">This item is no longer open: somebody has decided it, or it expired.</p>
      )}
      {all.length === 0 ? (
        <Nothing title="Nothing waits for you.">
          <p>Approvals, questions, failed agents, dead letters and mail to you appear here.</p>
        </Nothing>
      ) : (
        <ul class="cards">
          {all.slice(0, most.value).map((item) => (
            <li key={item.id} id={`item-${item.id}`} tabIndex={-1} class={BAD.has(item.kind) ? "card bad" : "card"} data-kind={item.kind}>
              <a class="permalink" href={`#/item/${item.id}`} aria-label="Link to this item">#</a>
              <Card item={item} />
            </li>
          ))}
        </ul>
      )}
      {all.length > most.value && (
        <button type="button" class="action" onClick={() => (most.value += SHOWN)}>Show {Math.min(SHOWN, all.length - most.value)} more of {all.length - most.value}</button>
      )}
    </section>
  );
}
