// What a renderer of a tool's call gets. Everything in it was written by an agent: each field is
// looked at before it is used.

import type { ComponentChildren } from "preact";
import type { ToolResult } from "../rows.ts";

export interface Call {
  tool: string;
  input: Record<string, unknown>;
  result: ToolResult | undefined;
}

/** What is shown under the headline of a call; nothing for one whose headline says it all. */
export type Renderer = (call: Call) => ComponentChildren;
