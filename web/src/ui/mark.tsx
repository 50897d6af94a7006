// An agent's mark: its own, or the hive's. It is drawn as a picture, whatever is in it.

export function Mark({ of }: { of: string | undefined }) {
  const source = of === undefined ? "/icon" : `/icon?of=${encodeURIComponent(of)}`;
  return <img class="mark" src={source} alt="" width={20} height={20} loading="lazy" />;
}
