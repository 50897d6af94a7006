// The page's types, made from docs/openapi.json: `npm run types` writes them, `--check` fails when
// they are out of date.
import { readFileSync, writeFileSync } from "node:fs";

const document = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
const schemas = document.components.schemas;
const target = new URL("../src/api/generated.ts", import.meta.url);

const name = (ref) => ref.split("/").at(-1);
const key = (word) => (/^[A-Za-z_]\w*$/.test(word) ? word : JSON.stringify(word));

/** A schema as a type. */
function type(schema, indent = "") {
  if (schema === true || Object.keys(schema).length === 0) return "unknown";
  if (schema.$ref !== undefined) return name(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices !== undefined) {
    const own = schema.properties === undefined ? "" : `${fields(schema, indent)} & `;
    return `${own}${own === "" ? "" : "("}${choices.map((one) => type(one, indent)).join(" | ")}${own === "" ? "" : ")"}`;
  }
  if (schema.allOf !== undefined) return schema.allOf.map((one) => type(one, indent)).join(" & ");
  if (Array.isArray(schema.type)) return schema.type.map((one) => type({ ...schema, type: one }, indent)).join(" | ");
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array": {
      const items = type(schema.items ?? true, indent);
      return / [|&] /.test(items) ? `(${items})[]` : `${items}[]`;
    }
    default:
      return schema.properties === undefined ? "Record<string, unknown>" : fields(schema, indent);
  }
}

function fields(schema, indent) {
  const inner = `${indent}  `;
  const lines = Object.entries(schema.properties ?? {}).map(([word, of]) => {
    const said = of.description === undefined ? "" : `${inner}/** ${of.description.replaceAll("\n", " ").replaceAll("*/", "* /")} */\n`;
    const optional = schema.required?.includes(word) ? "" : "?";
    return `${said}${inner}${key(word)}${optional}: ${type(of, inner)};`;
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

const parts = Object.entries(schemas).map(([word, schema]) => {
  const said = schema.description === undefined ? "" : `/** ${schema.description.replaceAll("\n", " ").replaceAll("*/", "* /")} */\n`;
  const plain = schema.type === "object" && schema.oneOf === undefined && schema.anyOf === undefined;
  return `${said}export ${plain ? `interface ${word} ${fields(schema, "")}` : `type ${word} = ${type(schema)};`}`;
});
const text = `// Made from docs/openapi.json by \`npm run types\`; not to be edited.\n\n${parts.join("\n\n")}\n`;
if (process.argv.includes("--check")) {
  let kept = "";
  try {
    kept = readFileSync(target, "utf8");
  } catch {
    // Said below.
  }
  if (kept !== text) {
    console.error("web/src/api/generated.ts is out of date: run `npm run types` in web/");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
