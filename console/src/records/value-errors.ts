import { isKithError } from '@kith/client'

type ValueErrors = {
  /** The messages by attribute key, or by the field of the record. */
  own: Partial<Record<string, string>>
  /** Whether the error has more than these. */
  others: boolean
}

const partsOf = (path: string) =>
  path
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))

/** The messages of a refused write at the values that they concern. */
export function valueErrors(error: unknown): ValueErrors {
  const details = isKithError(error) ? error.details : []
  const own: ValueErrors['own'] = {}
  for (const { path, message } of details) {
    const [first = '', second, ...rest] = partsOf(path)
    const name = first === 'attribute_values' && second !== undefined ? second : first
    own[name] ??= [...rest, message].join(' ')
  }
  return { own, others: details.length === 0 }
}
