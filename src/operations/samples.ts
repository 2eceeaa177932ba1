import type { Labels } from '../instruments/families.ts'

export type Sample = { labels: Labels; value: number }

/** The samples of a scrape, by the name of their metric. */
export type Samples = {
  of(name: string): Sample[]
  /** The sum of the samples with these labels. Undefined if there is none. */
  find(name: string, labels?: Labels): number | undefined
  /** As `find`, or 0. */
  sum(name: string, labels?: Labels): number
  /** Sums by the values of a label, in order of these. */
  sumBy(name: string, label: string): [labelValue: string, value: number][]
}

const linePattern = /^(\w+)(?:\{(.*)\})? (\S+)$/
const labelPattern = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** Parses Prometheus' text format as kith writes it: one sample per line, without times. */
export function parseSamples(text: string): Samples {
  const byName = new Map<string, Sample[]>()
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = linePattern.exec(line) ?? []
    if (name === undefined) continue
    const samples = byName.get(name) ?? []
    byName.set(name, samples)
    samples.push({ labels: parseLabels(labels), value: Number(value) })
  }
  const of = (name: string) => byName.get(name) ?? []
  const find = (name: string, labels: Labels = {}) => {
    const found = of(name).filter(sample =>
      Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )
    return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
  }
  return {
    of,
    find,
    sum: (name, labels) => find(name, labels) ?? 0,
    sumBy: (name, label) => {
      const groups = Map.groupBy(of(name), ({ labels }) => labels[label] ?? '')
      const sums = [...groups].map(([key, samples]): [string, number] => [
        key,
        samples.reduce((sum, { value }) => sum + value, 0),
      ])
      return sums.sort(([one], [other]) => (one < other ? -1 : 1))
    },
  }
}

const escapes: Record<string, string> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' }

const parseLabels = (text: string): Labels =>
  Object.fromEntries(
    [...text.matchAll(labelPattern)].map(([, key, value]) => [
      key!,
      value!.replace(/\\./g, found => escapes[found] ?? found),
    ]),
  )
