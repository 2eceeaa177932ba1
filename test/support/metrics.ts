/** The samples of a text in Prometheus' format, by name and labels as they stand: `kith_queue_waiting{work="read"}`. */
export type Samples = {
  /** 0 of what has no sample. */
  of(sample: string): number
  /** The metrics that the text declares, with their types, by name. */
  types: Record<string, string>
  /** The names of the labels of each metric, as far as there are samples. */
  labels(name: string): string[]
  text: string
}

/** Reads the metrics of a service. */
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
    of: sample => values.get(sample) ?? 0,
    types: types as Record<string, string>,
    labels: name => {
      const own = [...values.keys()].filter(
        key => key.replace(/(_bucket|_sum|_count)?(\{.*)?$/, '') === name || key.replace(/\{.*$/, '') === name,
      )
      return [...new Set(own.flatMap(key => [...key.matchAll(/(\w+)="/g)].map(([, label]) => label!)))].sort()
    },
    text,
  }
}
