import { readFileSync } from 'node:fs'

// Prints the current values of the dashboard's panels as text: node scripts/print-dashboard.ts <address of Prometheus>
type Target = { expr: string; legendFormat: string }
type Panel = { type: string; title: string; fieldConfig?: { defaults: { unit: string } }; targets?: Target[] }
type Series = { metric: Record<string, string>; value: [number, string] }

const prometheus = process.argv[2] ?? 'http://127.0.0.1:9090'
const file = new URL('../ops/grafana-dashboard.json', import.meta.url)
const { panels } = JSON.parse(readFileSync(file, 'utf8')) as { panels: Panel[] }

/** The format of values by Grafana's units. */
const formatters: Record<string, (value: number) => string> = {
  s: value => `${(value * 1_000).toPrecision(3)} ms`,
  bytes: value => `${(value / 2 ** 20).toFixed(0)} MiB`,
  percentunit: value => `${(value * 100).toFixed(1)} %`,
  reqps: value => `${value.toFixed(1)}/s`,
  bool_on_off: value => (value === 1 ? 'on' : 'OFF'),
}

async function queryPrometheus(expression: string): Promise<Series[]> {
  const query = expression.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*')
  const response = await fetch(`${prometheus}/api/v1/query?${new URLSearchParams({ query })}`).catch(() => {
    process.stderr.write(`No Prometheus responds at ${prometheus}. Give its address as the argument.\n`)
    process.exit(1)
  })
  const answer = (await response.json()) as { data?: { result: Series[] }; error?: string }
  if (!answer.data) throw new Error(`${expression}: ${answer.error}`)
  // A quantile without observations in the last minute is NaN.
  return answer.data.result.filter(({ value }) => value[1] !== 'NaN')
}

const nameOf = (legend: string, { metric }: Series) => legend.replace(/{{(\w+)}}/g, (_, label) => metric[label] ?? '')

async function print({ type, title, fieldConfig, targets = [] }: Panel) {
  if (type === 'row') return process.stdout.write(`\n== ${title}\n`)
  process.stdout.write(`${title}\n`)
  const format = formatters[fieldConfig?.defaults.unit ?? ''] ?? (value => String(Number(value.toPrecision(4))))
  for (const { expr, legendFormat } of targets)
    for (const series of await queryPrometheus(expr))
      process.stdout.write(`  ${nameOf(legendFormat, series).padEnd(48)} ${format(Number(series.value[1]))}\n`)
}

for (const panel of panels) await print(panel)
