import { readFileSync } from 'node:fs'
import { beforeAll, expect, it } from 'vitest'
import { readMetrics, type Samples } from './support/metrics.ts'
import { useOwnService } from './support/service.ts'

const document = readFileSync(new URL('../docs/metrics.md', import.meta.url), 'utf8')
const rows = [...document.matchAll(/^\| (`\w+`(?:, `\w+`)*) \| (\w+) \| (.*?) ?\| /gm)].flatMap(
  ([, names, type, labels]) =>
    [...names!.matchAll(/\w+/g)].map(([name]) => ({
      name,
      type: type!,
      labels: [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label!),
    })),
)

const service = useOwnService()
let metrics: Samples
beforeAll(async () => {
  const { send } = await service.organization()
  await send('POST', '/v1/people', { external_id: 'ada' })
  await send('GET', '/v1/people/ada')
  await send('GET', '/v1/people/nobody')
  metrics = await readMetrics(service.address)
})

it('docs/metrics.md lists every metric with its type, and no other', () => {
  const documented = Object.fromEntries(rows.map(({ name, type }) => [name, type]))
  expect(documented).toEqual(metrics.types)
  expect(rows).toHaveLength(Object.keys(documented).length)
})

it('docs/metrics.md lists the labels of every metric', () => {
  const ignoredLabels = new Set(['le'])
  for (const { name, labels } of rows) {
    const exposed = metrics.labels(name).filter(label => !ignoredLabels.has(label))
    if (exposed.length > 0) expect([name, labels.toSorted()]).toEqual([name, exposed])
  }
})
