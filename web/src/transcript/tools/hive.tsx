// The hive's own tools: what an agent says to others, asks and plans.

import { Markdown } from "../../ui/rich.tsx";
import { isLong } from "../headlines.ts";
import { text } from "../rows.ts";
import { Plain } from "./plain.tsx";
import type { Renderer } from "./tool.ts";

/** A result that only says that it worked needs no line of its own. */
function Outcome({ result }: { result: Parameters<typeof Plain>[0]["result"] }) {
  return result?.failed === true ? <Plain result={result} /> : null;
}

export const Send: Renderer = ({ input, result }) => {
  const body = text(input.body);
  return (
    <>
      {isLong(body) && <div class="quoted"><Markdown text={body} /></div>}
      <Outcome result={result} />
    </>
  );
};

export const Ask: Renderer = ({ input, result }) => {
  const options = Array.isArray(input.options) ? input.options.map(text).filter((option) => option !== "") : [];
  return (
    <>
      {options.length > 0 && <ul class="options">{options.map((option, index) => <li key={index}>{option}</li>)}</ul>}
      <Outcome result={result} />
    </>
  );
};

/** Tools whose headline says it all. */
export const Said: Renderer = ({ result }) => <Outcome result={result} />;

export const Heard: Renderer = ({ result }) => <Plain result={result} />;
