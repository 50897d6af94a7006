// What a change of a configuration would give an agent.

/** Keys and tables of `agent.toml` that let an agent do, reach or spend more. */
const KEYS = "tool_groups|capabilities|allowed_recipients|network|runtime|engine|env|passwordless_sudo|command|args|url|allowed_tools|source|target|mode|read_write|claude_plugins|claude_marketplaces";
const TABLES = "mounts|mcp_servers|user|limits|budget|env|frontend";
const POWER = new RegExp(`^\\+[ \\t]*(?:(?:${KEYS})[ \\t]*=|\\[{1,2}(?:${TABLES})\\b).*$`, "gm");
const MOST = 20;

/** Added lines that give an agent more than it has: the operator sees them before anything else. */
export function powers(diff: string): string[] {
  return [...diff.matchAll(POWER)].map((found) => found[0].slice(1).trim()).slice(0, MOST);
}
