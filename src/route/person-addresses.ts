/**
 * The two ways to address a person in a path. An endpoint of one person has a row for each: `suffix` ends its operation
 * id, `by` its summary.
 */
export const personAddresses = [
  { path: '/v1/people/{external_id}', params: { external_id: 'external_id' }, suffix: '', by: '' },
  { path: '/v1/people/internal/{uuid}', params: { uuid: 'uuid' }, suffix: 'ById', by: ' by internal identifier' },
] as const

export type PersonAddress = (typeof personAddresses)[number]

/** Returns the identifier of the person in the path of a request, and its kind. */
export function personOf({ uuid, external_id }: Record<string, string>): {
  by: 'id' | 'external_id'
  identifier: string
} {
  return uuid === undefined ? { by: 'external_id', identifier: external_id! } : { by: 'id', identifier: uuid }
}
