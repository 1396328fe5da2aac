// Formats numbers for people.

const wholeNumberFormat = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** `12,345`
 * @param {number} number */
export function formatCount(number) {
  return wholeNumberFormat.format(number);
}

/** `12.3k`: for narrow columns.
 * @param {number} number */
export function formatCompactNumber(number) {
  const magnitude = Math.abs(number);
  if (magnitude < 10 && !Number.isInteger(number)) return number.toFixed(1);
  if (magnitude < 10_000) return wholeNumberFormat.format(number);
  if (magnitude < 1_000_000) return `${(number / 1000).toFixed(magnitude < 100_000 ? 1 : 0)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

/** `2.4 kB`
 * @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** `1 task`, `2 tasks`
 * @param {number} number @param {string} singular @param {string} [plural] */
export function pluralize(number, singular, plural = `${singular}s`) {
  return `${formatCount(number)} ${number === 1 ? singular : plural}`;
}
