import type { AccessEntry } from '@kith/client'

export const kinds = ['access', 'security'] as const satisfies AccessEntry['kind'][]

/** What the address of the page says: which entries it lists. The days are those of the browser. */
export type AccessLogSearch = {
  kind?: AccessEntry['kind']
  subject?: string
  /** The internal identifier of a person or a record. */
  entity?: string
  from?: string
  to?: string
}

const day = /^\d{4}-\d\d-\d\d$/

export function validateAccessLogSearch(search: Record<string, unknown>): AccessLogSearch {
  const { subject, entity, from, to } = search
  const kind = kinds.find(each => each === search.kind)
  return {
    ...(kind && { kind }),
    ...(typeof subject === 'string' && subject !== '' && { subject }),
    ...(typeof entity === 'string' && entity !== '' && { entity }),
    ...(typeof from === 'string' && day.test(from) && { from }),
    ...(typeof to === 'string' && day.test(to) && { to }),
  }
}
