// A list of things to do, as the engine keeps it.

import { known } from "../../ui/known.ts";
import { fields, text } from "../rows.ts";
import type { Renderer } from "./tool.ts";

const SIGNS: Record<string, string> = { completed: "☑", in_progress: "◐", pending: "☐" };

export const Todo: Renderer = ({ input }) => {
  const todos = Array.isArray(input.todos) ? input.todos.map(fields) : [];
  return (
    <ul class="options">
      {todos.slice(0, 50).map((todo, index) => (
        <li key={index}>{known(SIGNS, text(todo.status)) ?? "☐"} {text(todo.content)}</li>
      ))}
    </ul>
  );
};
