import { parser } from '@prometheus-io/lezer-promql'

/** What an expression asks for: metrics, each with the labels it is chosen by, and the labels it is grouped by. */
export type Asked = { selectors: { metric: string; labels: string[] }[]; grouping: string[] }

/** Reads a PromQL expression by Prometheus' own grammar; throws with the place where it is none. */
export function readExpression(expression: string): Asked {
  const asked: Asked = { selectors: [], grouping: [] }
  const text = expression.replaceAll('$__rate_interval', '1m')
  parser.parse(text).iterate({
    enter: ({ type, name, from, to, node }) => {
      if (type.isError) throw new Error(`no PromQL at ${from}: ${text}`)
      if (name === 'VectorSelector') {
        const metric = node.getChild('Identifier')!
        asked.selectors.push({ metric: text.slice(metric.from, metric.to), labels: [] })
      }
      if (name !== 'LabelName') return
      const isGrouping = node.parent?.name === 'GroupingLabels'
      const labels = isGrouping ? asked.grouping : asked.selectors.at(-1)!.labels
      labels.push(text.slice(from, to))
    },
  })
  return asked
}

/** The family that a name belongs to: a histogram's parts are asked for by names of their own. */
export const familyOf = (types: Record<string, string>, name: string): string | undefined =>
  [name, name.replace(/_(bucket|sum|count)$/, '')].find(each => types[each] !== undefined)
