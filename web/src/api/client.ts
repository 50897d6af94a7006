// One door to the host's API. The token lives in this origin's storage and goes out in a header:
// no cookie, nothing in an address.

const TOKEN = "hive-token";

/** A refusal of the host: what happened, and what to do about it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint?: string,
  ) {
    super(message);
  }
}

export function token(): string | null {
  return localStorage.getItem(TOKEN);
}

export function keepToken(value: string): void {
  localStorage.setItem(TOKEN, value);
}

export function dropToken(): void {
  localStorage.removeItem(TOKEN);
}

/** The headers of every request. */
export function headers(more: Record<string, string> = {}): Record<string, string> {
  const held = token();
  return held === null ? more : { ...more, authorization: `Bearer ${held}` };
}

async function refusal(response: Response): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as {
      error?: { code?: string; message?: string; hint?: string };
    };
    if (error?.message !== undefined) {
      return new ApiError(response.status, error.code ?? "error", error.message, error.hint);
    }
  } catch {
    // Not the host's own words: say what the status says.
  }
  return new ApiError(response.status, "http", `The host answered ${response.status}.`);
}

/** What to do when the token is not good any more; the session says. */
let refused = (): void => undefined;
export function whenRefused(work: () => void): void {
  refused = work;
}

async function answer<T>(response: Response): Promise<T> {
  if (!response.ok) {
    const error = await refusal(response);
    if (response.status === 401) refused();
    throw error;
  }
  return (await response.json()) as T;
}

/** The host does not answer at all. */
export class Unreachable extends Error {}

async function reach(path: string, how: RequestInit): Promise<Response> {
  try {
    return await fetch(path, how);
  } catch (error) {
    // That is all that a browser says of it.
    throw error instanceof TypeError ? new Unreachable("The host does not answer.") : error;
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return answer(await reach(path, { headers: headers(), cache: "no-store", signal: signal ?? null }));
}

/** Does something. Sent again by the browser or a proxy, it is still done once. */
export function post<T>(path: string, body: unknown = {}): Promise<T> {
  return submit(path, body, { "idempotency-key": newKey() });
}

/** Asks something that takes a body. */
export function ask<T>(path: string, body: unknown): Promise<T> {
  return submit(path, body, {});
}

async function submit<T>(path: string, body: unknown, more: Record<string, string>): Promise<T> {
  return answer(await reach(path, { method: "POST", headers: headers({ "content-type": "application/json", ...more }), body: JSON.stringify(body) }));
}

/** A command of the host, as on its admin socket. */
export function command<T>(cmd: string, fields: Record<string, unknown> = {}): Promise<T> {
  return post<T>("/api/call", { cmd, ...fields });
}

/** A command that only tells something. */
export function query<T>(cmd: string, fields: Record<string, unknown> = {}): Promise<T> {
  return ask<T>("/api/call", { cmd, ...fields });
}

/** The lines of a text that the host answers. */
export async function getLines(path: string, signal: AbortSignal): Promise<string[]> {
  const response = await reach(path, { headers: headers(), cache: "no-store", signal });
  if (!response.ok) throw await refusal(response);
  return (await response.text()).split("\n").filter((line) => line !== "");
}

/** Saves what the host answers as a file. */
export async function download(path: string, name: string): Promise<void> {
  const response = await reach(path, { headers: headers(), cache: "no-store" });
  if (!response.ok) throw await refusal(response);
  const url = URL.createObjectURL(await response.blob());
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(url);
}

/** A key that makes a repeated request one. */
export function newKey(): string {
  return `page-${crypto.randomUUID()}`;
}
