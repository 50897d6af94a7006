// An agent's side of its socket: one JSON object per line, both ways.

import { createConnection, type Socket } from "node:net";
import { createInterface } from "node:readline";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Reply = any;

export class Peer {
  #socket: Socket;
  #waiting: { done(reply: Reply): void; failed(error: Error): void }[] = [];
  #seq = 0;
  #epoch = `test-${Math.random().toString(36).slice(2)}`;

  constructor(path: string) {
    this.#socket = createConnection(path);
    createInterface({ input: this.#socket }).on("line", (line) => this.#waiting.shift()?.done(JSON.parse(line)));
    const fail = (error: Error): void => this.#waiting.splice(0).forEach((one) => one.failed(error));
    this.#socket.on("error", fail).on("close", () => fail(new Error("the daemon closed the agent's socket")));
  }

  /** The reply to a request; a refusal throws. */
  async ask(cmd: string, fields: Record<string, unknown> = {}): Promise<Reply> {
    const reply = await new Promise<Reply>((done, failed) => {
      this.#waiting.push({ done, failed });
      this.#socket.write(`${JSON.stringify({ cmd, ...fields })}\n`);
    });
    if (reply.ok !== true) throw new Error(`${cmd}: ${JSON.stringify(reply.error)}`);
    return reply;
  }

  /** Waits for requests of the host, as a harness that is connected does; what comes is left alone. */
  wait(): void {
    this.ask("control", { hello: true, wait_seconds: 180 }).catch(() => undefined);
  }

  /** Answers the next request of the host. */
  async refuse(note: string): Promise<void> {
    for (;;) {
      const { requests } = await this.ask("control", { wait_seconds: 60 });
      if (requests.length === 0) continue;
      await this.ask("control", { done: requests.map((one: { request_id: number }) => ({ request_id: one.request_id, ok: false, note })) });
      return;
    }
  }

  /** Posts events as this agent's harness would. */
  async post(...events: { kind: string; data: unknown }[]): Promise<void> {
    for (let at = 0; at < events.length; at += 500) {
      const piece = events.slice(at, at + 500).map((event) => ({ seq: ++this.#seq, at: new Date().toISOString(), ...event }));
      await this.ask("post_events", { epoch: this.#epoch, events: piece });
    }
  }

  /** A whole turn in which the agent says something. */
  async turn(from: string, body: string, ...values: unknown[]): Promise<void> {
    await this.post(
      { kind: "turn_start", data: { from, body, unread: 0, delivery: 1, turn: "t" } },
      ...values.map((value) => ({ kind: "stream", data: { value } })),
      { kind: "turn_end", data: { ok: true, outcome: "ok" } },
    );
  }

  close(): void {
    this.#socket.destroy();
  }
}

export const said = (text: string): unknown => ({ type: "assistant", message: { content: [{ type: "text", text }] } });
export const called = (id: string, name: string, input: unknown): unknown => ({
  type: "assistant",
  message: { content: [{ type: "tool_use", id, name, input }] },
});
export const returned = (id: string, content: unknown, failed = false): unknown => ({
  type: "user",
  message: { content: [{ type: "tool_result", tool_use_id: id, content, is_error: failed }] },
});
