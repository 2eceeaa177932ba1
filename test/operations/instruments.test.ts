import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readMetrics, type Samples } from '../support/metrics.ts'
import { checkout } from '../support/process.ts'
import { type Service, startService } from '../support/service.ts'
import { sections } from './manual.ts'
import { familyOf, readExpression } from './promql.ts'

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

/** What Prometheus adds to whatever it scrapes, and the label of buckets. */
const always = { metrics: ['up'], labels: ['instance', 'job', 'le'] }

describe('what the alerts and the dashboard ask for', () => {
  let service: Service
  let metrics: Samples
  beforeAll(async () => {
    service = await startService()
    const { send } = await service.organization()
    await send('POST', '/v1/people', { external_id: 'ada' })
    await send('GET', '/v1/people/ada')
    await send('GET', '/v1/people/nobody')
    metrics = await readMetrics(service.address)
  })
  afterAll(() => service.stop())

  it.each(expressions)('is told by /metrics, with these labels: $where', ({ expr }) => {
    const { selectors, grouping } = readExpression(expr)
    expect(selectors.length).toBeGreaterThan(0)
    for (const { metric, labels } of selectors) {
      if (always.metrics.includes(metric)) continue
      expect(familyOf(metrics.types, metric), metric).toBeDefined()
      const told = metrics.labels(metric)
      // What has not happened yet has no sample to see the labels by.
      if (metrics.text.includes(`\n${metric}{`))
        expect([...told, ...always.labels], metric).toEqual(expect.arrayContaining([...labels, ...grouping]))
    }
  })
})

describe('the alerts', () => {
  it('are some, each with a name of its own', () => {
    expect(alerts.length).toBeGreaterThan(10)
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length)
  })

  it.each(alerts)('lead to a section that says what $alert means and what to do', ({ alert, labels, annotations }) => {
    const section = sections.find(({ title }) => title === alert)
    expect(annotations.runbook).toBe(`docs/operations.md#${section?.anchor}`)
    expect(section?.text).toMatch(/\*\*Means\*\*[\s\S]+\*\*Do\*\*/)
    expect(['page', 'ticket']).toContain(labels.severity)
    expect(annotations.summary).toMatch(/\S/)
  })

  it('are all that the manual has sections of', () => {
    const told = sections.map(({ title }) => title).filter(title => /^Kith[A-Z]\w+$/.test(title))
    expect(told).toEqual(alerts.map(({ alert }) => alert))
  })
})

describe('the dashboard', () => {
  it('can be imported anywhere: it asks for the data source, and names none', () => {
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

  it('has panels that lie beside each other, each with something to show', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: h * w }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    for (const { title, targets } of panels) expect(targets?.length, title).toBeGreaterThan(0)
  })
})
