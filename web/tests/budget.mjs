// Fails when what a first visit loads has grown beyond its budget, or the shell holds script of its own.
import { readdirSync, readFileSync, statSync } from "node:fs";

/** Compressed, in bytes. */
const BUDGET = { js: 60 * 1024, css: 15 * 1024 };
const dist = new URL("../dist/", import.meta.url);
const shell = readFileSync(new URL("index.html", dist), "utf8");
const problems = [];
for (const [kind, most] of Object.entries(BUDGET)) {
  // Only what the shell names: a part that is loaded later costs the first visit nothing.
  const names = readdirSync(new URL("assets/", dist)).filter((name) => name.endsWith(`.${kind}`) && shell.includes(name));
  const size = names.reduce((sum, name) => sum + statSync(new URL(`assets/${name}.gz`, dist)).size, 0);
  console.log(`${kind}: ${(size / 1024).toFixed(1)} of ${most / 1024} KB compressed`);
  if (names.length === 0 || size > most) problems.push(`${kind} is over its budget, or missing: ${size} of ${most} bytes in ${names.join(", ")}`);
}
for (const [what, pattern] of [["a script of its own", /<script(?![^>]*\ssrc=)/], ["a style of its own", /<style|\sstyle=/], ["a handler", /\son\w+=/], ["another origin", /(src|href)="(https?:)?\/\//]]) {
  if (pattern.test(shell)) problems.push(`the shell holds ${what}, which the policy forbids`);
}
for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
