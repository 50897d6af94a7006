// A change of a file as removed and added lines.

const MOST = 200;

function Lines({ text, sign }: { text: string; sign: "-" | "+" }) {
  if (text === "") return null;
  const all = text.replace(/\n$/, "").split("\n");
  return (
    <>
      {all.slice(0, MOST).map((line, index) => (
        <span key={index} class={sign === "+" ? "added" : "removed"}>
          {`${sign} ${line}\n`}
        </span>
      ))}
      {all.length > MOST && <span class="dim">{`  … ${all.length - MOST} more lines\n`}</span>}
    </>
  );
}

export function Change({ before, after }: { before: string; after: string }) {
  return (
    <pre class="change">
      <Lines text={before} sign="-" />
      <Lines text={after} sign="+" />
    </pre>
  );
}
