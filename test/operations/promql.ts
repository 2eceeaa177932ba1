import { parser } from '@prometheus-io/lezer-promql'

/** The parts of a PromQL expression: metrics, each with the labels of its selector, and the labels of its groupings. */
export type Expression = { selectors: { metric: string; labels: string[] }[]; grouping: string[] }

/** Parses a PromQL expression with Prometheus' own grammar. Throws with the position of a syntax error. */
export function parseExpression(expression: string): Expression {
  const parsed: Expression = { selectors: [], grouping: [] }
  const text = expression.replaceAll('$__rate_interval', '1m')
  parser.parse(text).iterate({
    enter: ({ type, name, from, to, node }) => {
      if (type.isError) throw new Error(`PromQL syntax error at ${from}: ${text}`)
      if (name === 'VectorSelector') {
        const metric = node.getChild('Identifier')!
        parsed.selectors.push({ metric: text.slice(metric.from, metric.to), labels: [] })
      }
      if (name !== 'LabelName') return
      const isGrouping = node.parent?.name === 'GroupingLabels'
      const labels = isGrouping ? parsed.grouping : parsed.selectors.at(-1)!.labels
      labels.push(text.slice(from, to))
    },
  })
  return parsed
}

/** The metric that a sample name belongs to. A histogram has samples with the suffixes bucket, sum and count. */
export const familyOf = (types: Record<string, string>, name: string): string | undefined =>
  [name, name.replace(/_(bucket|sum|count)$/, '')].find(each => types[each] !== undefined)
