// Which renderer shows which tool. What is not here is shown by its arguments and its result.

import { known } from "../../ui/known.ts";
import { Edit, Read, Search, Write } from "./files.tsx";
import { Ask, Heard, Said, Send } from "./hive.tsx";
import { Other } from "./plain.tsx";
import { Bash, Task } from "./shell.tsx";
import { Todo } from "./todo.tsx";
import type { Renderer } from "./tool.ts";

const RENDERERS: Record<string, Renderer> = {
  Read, Write, Edit, MultiEdit: Edit, Glob: Search, Grep: Search, Bash, TodoWrite: Todo,
  read_file: Read, write_file: Write, edit_file: Edit, grep: Search, glob: Search, bash: Bash,
  mcp__bash__run: Task,
  mcp__bash__status: Task,
  mcp__hyperhive__send: Send,
  mcp__hyperhive__recv: Heard,
  mcp__hyperhive__ask: Ask,
  mcp__hyperhive__answer: Said,
  mcp__hyperhive__remind: Said,
  mcp__hyperhive__set_status: Said,
  mcp__hyperhive__request_next_turn: Said,
};

export function rendererOf(tool: string): Renderer {
  return known(RENDERERS, tool) ?? Other;
}
