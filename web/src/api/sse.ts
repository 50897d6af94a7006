// Server-sent events cut out of a stream of text, as the HTML standard says.

export interface SseEvent {
  id: string | undefined;
  kind: string;
  data: string;
}

export class SseParser {
  #rest = "";
  #data: string[] = [];
  #kind = "";
  #id: string | undefined;

  /** The id of the last block, also of one without data: from there a reader goes on. */
  get last(): string | undefined {
    return this.#id;
  }

  /** Takes the next piece of text and returns the events that it completes. */
  push(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    this.#rest += text;
    let start = 0;
    for (;;) {
      const end = this.#rest.indexOf("\n", start);
      if (end < 0) break;
      const line = this.#rest.slice(start, this.#rest[end - 1] === "\r" ? end - 1 : end);
      start = end + 1;
      const event = this.#line(line);
      if (event !== undefined) events.push(event);
    }
    this.#rest = this.#rest.slice(start);
    return events;
  }

  #line(line: string): SseEvent | undefined {
    if (line === "") return this.#flush();
    if (line.startsWith(":")) return undefined;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const raw = colon < 0 ? "" : line.slice(colon + 1);
    const value = raw.startsWith(" ") ? raw.slice(1) : raw;
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#kind = value;
    else if (field === "id") this.#id = value;
    return undefined;
  }

  #flush(): SseEvent | undefined {
    const data = this.#data.join("\n");
    const kind = this.#kind === "" ? "message" : this.#kind;
    const empty = this.#data.length === 0;
    this.#data = [];
    this.#kind = "";
    return empty ? undefined : { id: this.#id, kind, data };
  }
}
