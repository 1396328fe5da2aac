// Parses the metrics of a node and compares two samples.

/** @typedef {Map<string, {labels: Record<string, string>, value: number}[]>} Metrics */

/** @param {string} text
 * @returns {Metrics} */
export function parseMetrics(text) {
  /** @type {Metrics} */
  const metrics = new Map();
  for (const line of text.split("\n")) {
    const parts = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!parts) continue;
    const [, name, labelText = "", number] = parts;
    /** @type {Record<string, string>} */
    const labels = {};
    for (const [, label, value] of labelText.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[label] = value;
    let seriesList = metrics.get(name);
    if (!seriesList) metrics.set(name, (seriesList = []));
    seriesList.push({ labels, value: Number(number) });
  }
  return metrics;
}

/** Sums the values with these labels.
 * @param {Metrics} metrics @param {string} name @param {Record<string, string>} [labels] */
export function sumMetric(metrics, name, labels = {}) {
  const required = Object.entries(labels);
  let total = 0;
  for (const series of metrics.get(name) ?? []) {
    if (required.every(([label, value]) => series.labels[label] === value)) total += series.value;
  }
  return total;
}

/** Cumulative bucket counts of a histogram, summed over all labels.
 * @param {Metrics} metrics @param {string} name */
function histogramBuckets(metrics, name) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return [...counts].sort(([a], [b]) => a - b);
}

/** Quantiles of the values measured between two samples, in milliseconds; null if there were none.
 * @param {Metrics} before @param {Metrics} after @param {string} name @param {number[]} quantiles
 * @returns {(number | null)[]} */
export function quantileMillisBetweenSamples(before, after, name, quantiles) {
  const countsBefore = new Map(histogramBuckets(before, name));
  const increase = histogramBuckets(after, name).map(([bound, count]) => /** @type {[number, number]} */ ([bound, count - (countsBefore.get(bound) ?? 0)]));
  const total = increase.at(-1)?.[1] ?? 0;
  if (total <= 0) return quantiles.map(() => null);
  return quantiles.map((quantile) => {
    const targetCount = quantile * total;
    let countBelow = 0;
    let floor = 0;
    for (const [bound, count] of increase) {
      if (count >= targetCount) {
        if (bound === Infinity) return floor * 1000;
        const share = count === countBelow ? 1 : (targetCount - countBelow) / (count - countBelow);
        return (floor + (bound - floor) * share) * 1000;
      }
      countBelow = count;
      floor = bound;
    }
    return floor * 1000;
  });
}
