import type { WireChange } from './changes.ts'

/** The response of a dry run of one write. */
export type WireDryRun = {
  dry_run: true
  result: string
  id: string | null
  external_id: string | null
  version: number
  before: object | null
  after: object | null
  placeholders: { kind: string; external_id: string }[]
  consents: object[]
}

/** The response of a dry run of definitions. */
export type WireDefinitionDryRun = {
  dry_run: true
  changes: { subject: string; id: number | null; operation: string; before: object; after: object }[]
}

/** Returns the path with the parameter of a dry run. */
export const dryRunOf = (path: string): string => `${path}${path.includes('?') ? '&' : '?'}dry_run=true`

/**
 * Returns how the dry runs of writes of one kind (`people`, or the key of a stack) differ from the log entries of the same writes;
 * undefined if they agree. The order does not count, because a batch stores independent operations first.
 */
export function findDryRunMismatch(kind: string, dryRuns: WireDryRun[], logged: WireChange[]): string | undefined {
  const announced = dryRuns.flatMap(({ version, before, after, placeholders }) => [
    ...placeholders.map(placeholder => ({
      ...{ kind: placeholder.kind, version: null, before: null },
      after: { external_id: placeholder.external_id, state: 'placeholder' },
    })),
    ...(after === null ? [] : [{ kind, version, before, after }]),
  ])
  const entries = logged.map(({ subject, stack_key, operation, version, before, after }) => {
    const isPlaceholder = operation === 'create' && after?.state === 'placeholder'
    return { kind: subject === 'person' ? 'people' : stack_key, version: isPlaceholder ? null : version, before, after }
  })
  return difference(announced, entries)
}

/** As {@link findDryRunMismatch}, for a write of definitions. */
export function findDefinitionMismatch({ changes }: WireDefinitionDryRun, logged: WireChange[]): string | undefined {
  return difference(
    changes.map(({ subject, operation, before, after }) => ({ subject, operation, before, after })),
    logged.map(({ subject, operation, before, after }) => ({ subject, operation, before, after })),
  )
}

function difference(announced: object[], logged: object[]): string | undefined {
  const [dry, real] = [announced.map(canonicalText).sort(), logged.map(canonicalText).sort()]
  if (JSON.stringify(dry) === JSON.stringify(real)) return undefined
  const missing = (from: string[], other: string[]) => from.filter(text => !other.includes(text)).join('\n')
  return `of ${dry.length} announced changes the log lacks\n${missing(dry, real)}\nand of ${real.length} logged ones the dry run lacks\n${missing(real, dry)}`
}

/** The relationships of `createShop`, as keys and as paths. */
const relationships = new Set(['referrer', 'friends', 'employer'].flatMap(key => [key, `/attribute_values/${key}`]))
const linkedOrNull = (value: unknown) => (value === null ? null : 'linked')

/**
 * The JSON of a value with its keys in order. Times are left out, because an answer without `collected_at` has the time
 * of its write. Names are left out, because a dry run has the names of linked entities as the request has them, and the
 * log the current ones.
 */
export function canonicalText(value: unknown): string {
  return JSON.stringify(value, (key, inner) => {
    if (key === 'answered_at') return undefined
    if (relationships.has(key)) return linkedOrNull(inner)
    if (relationships.has(inner?.path)) return [inner.path, linkedOrNull(inner.before), linkedOrNull(inner.after)]
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
}
