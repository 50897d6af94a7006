// Bars by day, drawn as SVG: no library, readable without colours, with the figures in a table for
// those who do not see them.

export interface Series {
  name: string;
  /** One value for each day, or for each turn. */
  values: number[];
}

const WIDTH = 320;
const HEIGHT = 90;
/** A bar is no wider than this, however few there are. */
const WIDEST = 24;
/** As many series have a colour of their own; the rest are summed up. */
const COLOURS = 6;

/** The largest series by themselves, the others as one. */
export function largest(series: Series[], days: number): Series[] {
  const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
  const sorted = [...series].sort((a, b) => sum(b.values) - sum(a.values));
  if (sorted.length <= COLOURS) return sorted;
  const rest = sorted.slice(COLOURS - 1);
  const values = Array.from({ length: days }, (_, day) => rest.reduce((total, one) => total + (one.values[day] ?? 0), 0));
  return [...sorted.slice(0, COLOURS - 1), { name: `${rest.length} others`, values }];
}

export function Chart({ title, days, series, format }: { title: string; days: string[]; series: Series[]; format: (value: number) => string }) {
  const shown = largest(series, days.length);
  const totals = days.map((_, day) => shown.reduce((total, one) => total + (one.values[day] ?? 0), 0));
  const most = Math.max(...totals, 0);
  const width = Math.min(WIDEST, WIDTH / Math.max(1, days.length));
  return (
    <figure class="chart">
      <figcaption>
        {title} <span class="dim">{most === 0 ? "none" : `up to ${format(most)}`}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 18}`} role="img" aria-label={`${title}: ${days.map((day, index) => `${day} ${format(totals[index] ?? 0)}`).join(", ")}`}>
        {days.map((day, index) => {
          let top = HEIGHT;
          return (
            <g key={index}>
              {shown.map((one, number) => {
                const height = most === 0 ? 0 : ((one.values[index] ?? 0) / most) * HEIGHT;
                top -= height;
                return (
                  <rect key={one.name} class={`series-${number}`} x={index * width + 1} y={top} width={Math.max(1, width - 2)} height={height}>
                    <title>{`${day} · ${one.name}: ${format(one.values[index] ?? 0)}`}</title>
                  </rect>
                );
              })}
              {index === 0 && <text x="0" y={HEIGHT + 14}>{day}</text>}
              {index === days.length - 1 && index > 0 && <text x={WIDTH} y={HEIGHT + 14} text-anchor="end">{day}</text>}
            </g>
          );
        })}
        <line x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
      </svg>
      <ul class="legend">
        {shown.map((one, number) => <li key={one.name}><span class={`swatch series-${number}`} aria-hidden="true" /> {one.name}</li>)}
      </ul>
    </figure>
  );
}
