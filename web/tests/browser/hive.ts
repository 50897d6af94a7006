// A real hive on a directory of its own, for one test file: the daemon, and a model that is scripted.
//
// Nothing of the environment reaches it but the search path, and nothing leaves loopback.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Peer } from "./peer.ts";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.env.CARGO_TARGET_DIR ?? join(here, "../../../target"));
export const bin = process.env.HIVE_BIN_DIR ?? join(target, "debug");
const cpu = process.arch === "arm64" ? "arm64" : "x64";
const claude =
  process.env.CLAUDE_BIN ?? join(target, `claude/node_modules/@anthropic-ai/claude-code-linux-${cpu}/claude`);
const run = promisify(execFile);

/** How long anything may take on a machine that is busy. */
export const PATIENCE = 60_000;

export interface Options {
  /** Further lines of `hive.toml`. */
  config?: string;
  /** A scenario for the model, beside this file; agents then run the real engine. */
  scenario?: string;
}

export class Hive {
  readonly root = mkdtempSync(join(tmpdir(), "hive-pages-"));
  port = 0;
  #daemon: ChildProcess | undefined;
  #model: ChildProcess | undefined;

  static async start(options: Options = {}): Promise<Hive> {
    const hive = new Hive();
    hive.port = await freePort();
    let engine = "";
    if (options.scenario !== undefined) {
      const url = await hive.#rehearse(join(here, options.scenario));
      engine = `[engine]\ndefault = "${claude}"\n[engine.env]\nANTHROPIC_BASE_URL = "${url}"\nANTHROPIC_API_KEY = "dummy"\nCLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"\n`;
    }
    const config = `[hive]\nname = "testhive"\nroot_agent = ""\n[dashboard]\nport = ${hive.port}\n${engine}${options.config ?? ""}`;
    writeFileSync(join(hive.root, "hive.toml"), config);
    await hive.launch();
    return hive;
  }

  /** Starts the daemon and waits until it answers. */
  async launch(): Promise<void> {
    const log = openSync(join(this.root, "daemon.log"), "a");
    const daemon = spawn(join(bin, "hive-c0re"), ["--root", this.root, "serve"], {
      env: cleaned(this.root),
      stdio: ["ignore", log, log],
    });
    this.#daemon = daemon;
    const until = Date.now() + PATIENCE;
    for (;;) {
      if (daemon.exitCode !== null || Date.now() > until) {
        throw new Error(`the daemon did not come up:\n${readFileSync(join(this.root, "daemon.log"), "utf8").slice(-4000)}`);
      }
      const answer = await fetch(`${this.address}/healthz`).catch(() => undefined);
      if (answer?.ok) return;
      await new Promise((wake) => setTimeout(wake, 20));
    }
  }

  /** Pulls the plug; agents go on. */
  async kill(): Promise<void> {
    await ended(this.#daemon, "SIGKILL");
  }

  async stop(): Promise<void> {
    await this.cli("stop-all", "--yes").catch(() => undefined);
    await ended(this.#daemon, "SIGTERM");
    await ended(this.#model, "SIGTERM");
    rmSync(this.root, { recursive: true, force: true });
  }

  get address(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** What the command line prints with `--json`. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  async cli(...args: string[]): Promise<any> {
    const { stdout } = await run(join(bin, "hive-c0re"), ["--root", this.root, "--json", ...args], {
      env: cleaned(this.root),
      timeout: PATIENCE,
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout.trim() === "" ? {} : JSON.parse(stdout);
  }

  /** A new one-time link to the dashboard, or to an agent's page. */
  async link(agent?: string): Promise<string> {
    return (await this.cli("link", ...(agent === undefined ? [] : [agent]))).url;
  }

  /** The operator's own token. */
  get token(): string {
    return readFileSync(join(this.root, "state/operator-token"), "utf8").trim();
  }

  /** Asks the API as the operator. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  async call(cmd: string, fields: Record<string, unknown> = {}): Promise<any> {
    const answer = await fetch(`${this.address}/api/call`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      body: JSON.stringify({ cmd, ...fields }),
    });
    return answer.json();
  }

  /** An agent that runs nowhere, spoken for by the test. */
  async agent(name: string): Promise<Peer> {
    await this.cli("spawn", name, "--runtime", "none");
    return this.peer(name);
  }

  /** The side of an agent that is there already. */
  peer(name: string): Peer {
    return new Peer(join(this.root, "run/agents", name, "mcp.sock"));
  }

  /** Commits files to an agent's proposed configuration, and has the agent ask for it: the approval's number. */
  async propose(agent: string, files: Record<string, string>, reason: string): Promise<number> {
    const dir = join(this.root, "state/proposed", agent, "config");
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
    const git = async (...args: string[]): Promise<string> => {
      const author = ["-c", `user.name=${agent}`, "-c", `user.email=${agent}@example.test`];
      return (await run("git", ["-C", dir, ...author, ...args])).stdout.trim();
    };
    await git("add", "-A");
    await git("commit", "-qm", "a change");
    await this.call("set_permissions", { name: agent, grant: ["approvals"] });
    const peer = this.peer(agent);
    const { approval_id } = await peer.ask("request_apply_commit", { agent, commit_ref: await git("rev-parse", "HEAD"), reason });
    peer.close();
    return approval_id;
  }

  async #rehearse(scenario: string): Promise<string> {
    const model = spawn(join(bin, "hive-rehearsal"), ["serve", "--scenario", scenario], {
      env: cleaned(this.root),
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#model = model;
    for await (const piece of model.stdout) return JSON.parse(String(piece)).url;
    throw new Error("the rehearsal model did not come up");
  }
}

function cleaned(home: string): NodeJS.ProcessEnv {
  return { HOME: home, PATH: process.env.PATH ?? "/usr/bin:/bin", RUST_BACKTRACE: "1" };
}

async function ended(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((done) => child.once("exit", done));
  child.kill(signal);
  await gone;
}

/** A port that nobody listens on: asked of the kernel, and given back. */
function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const server = createServer().once("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => (address !== null && typeof address === "object" ? done(address.port) : failed(new Error("no port"))));
    });
  });
}
