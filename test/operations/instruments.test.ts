import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readMetrics, type Samples } from '../support/metrics.ts'
import { checkout } from '../support/process.ts'
import { useOwnService } from '../support/service.ts'
import { sections } from './manual.ts'
import { familyOf, parseExpression } from './promql.ts'

const read = (path: string) => readFileSync(join(checkout, path), 'utf8')

type Alert = {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; runbook: string }
}

type Panel = {
  id: number
  type: string
  title: string
  datasource?: { uid: string }
  gridPos: { h: number; w: number; x: number; y: number }
  targets?: { expr: string; datasource: { uid: string } }[]
}

type Dashboard = {
  id?: number
  schemaVersion: number
  panels: Panel[]
  templating: { list: { name: string; type: string; definition?: string }[] }
}

const { groups } = parse(read('ops/alerts.yaml')) as { groups: { rules: Alert[] }[] }
const alerts = groups.flatMap(({ rules }) => rules)
const dashboard = JSON.parse(read('ops/grafana-dashboard.json')) as Dashboard
const panels = dashboard.panels.filter(({ type }) => type !== 'row')

const expressions = [
  ...alerts.map(({ alert, expr }) => ({ where: `the alert ${alert}`, expr })),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ where: `the panel "${title}"`, expr }))),
]

/** The metric and labels that Prometheus adds, and the label of histogram buckets. */
const builtIn = { metrics: ['up'], labels: ['instance', 'job', 'le'] }

describe('the queries of the alerts and the dashboard', () => {
  const service = useOwnService()
  let metrics: Samples
  beforeAll(async () => {
    const { send } = await service.organization()
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('GET', '/v1/people/ada')
    await send('GET', '/v1/people/nobody')
    metrics = await readMetrics(service.address)
  })

  it.each(expressions)('use metrics and labels that /metrics exposes: $where', ({ expr }) => {
    const { selectors, grouping } = parseExpression(expr)
    expect(selectors.length).toBeGreaterThan(0)
    for (const { metric, labels } of selectors) {
      if (builtIn.metrics.includes(metric)) continue
      expect(familyOf(metrics.types, metric), metric).toBeDefined()
      const exposed = metrics.labels(metric)
      // A metric without samples shows no labels.
      if (metrics.text.includes(`\n${metric}{`))
        expect([...exposed, ...builtIn.labels], metric).toEqual(expect.arrayContaining([...labels, ...grouping]))
    }
  })
})

describe('the alerts', () => {
  it('have unique names', () => {
    expect(alerts.length).toBeGreaterThan(10)
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length)
  })

  it.each(alerts)('link to a section that says what $alert means and what to do', ({ alert, labels, annotations }) => {
    const section = sections.find(({ title }) => title === alert)
    expect(annotations.runbook).toBe(`docs/runbook.md#${section?.anchor}`)
    expect(section?.text).toMatch(/\*\*Means\*\*[\s\S]+\*\*Do\*\*/)
    expect(['page', 'ticket']).toContain(labels.severity)
    expect(annotations.summary).toMatch(/\S/)
  })

  it('are in the order of the manual, which has a section for each and no other', () => {
    const documented = sections.map(({ title }) => title).filter(title => /^Kith[A-Z]\w+$/.test(title))
    expect(documented).toEqual(alerts.map(({ alert }) => alert))
  })
})

describe('the dashboard', () => {
  it('asks for a data source instead of naming one', () => {
    expect(dashboard.id).toBeUndefined()
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36)
    expect(dashboard.templating.list).toContainEqual(
      expect.objectContaining({ name: 'datasource', type: 'datasource' }),
    )
    const sources = panels.flatMap(({ datasource, targets = [] }) => [
      datasource,
      ...targets.map(each => each.datasource),
    ])
    expect(new Set(sources.map(source => source?.uid))).toEqual(new Set([`\${datasource}`]))
  })

  it('has panels that do not overlap, each with a query', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: h * w }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    for (const { title, targets } of panels) expect(targets?.length, title).toBeGreaterThan(0)
  })
})
