/** The samples of a text in Prometheus' format, by name and labels as written: `kith_queue_waiting{work="read"}`. */
export type Samples = {
  /** The value of a sample, or 0 if there is none. */
  value(sample: string): number
  /** The types of all declared metrics, by name. */
  types: Record<string, string>
  /** The label names of a metric's samples, sorted. Empty if it has no samples. */
  labels(name: string): string[]
  text: string
}

/** Reads the metrics of a service. Throws at any status but 200. */
export async function readMetrics(address: string): Promise<Samples> {
  const response = await fetch(`${address}/metrics`, { headers: { Connection: 'close' } })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${response.status} ${text}`)
  return samplesOf(text)
}

function samplesOf(text: string): Samples {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  const values = new Map(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]))
  const types = Object.fromEntries([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]))
  return {
    value: sample => values.get(sample) ?? 0,
    types: types as Record<string, string>,
    labels: name => {
      const sampleNames = [...values.keys()].filter(
        key => key.replace(/(_bucket|_sum|_count)?(\{.*)?$/, '') === name || key.replace(/\{.*$/, '') === name,
      )
      return [...new Set(sampleNames.flatMap(key => [...key.matchAll(/(\w+)="/g)].map(([, label]) => label!)))].sort()
    },
    text,
  }
}
