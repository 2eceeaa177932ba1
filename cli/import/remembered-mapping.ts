import type { ImportMapping } from '../../client/index.ts'
import { type ColumnOptions, findTarget } from '../../transfer/columns.ts'
import type { Target } from '../../transfer/target.ts'

const trimmed = (names: readonly string[]) => names.map(name => name.trim())

/**
 * Returns the column options of a file whose header was mapped in the console before, so that the columns become the
 * same fields. Options of the command take precedence. Undefined if there is no such mapping, or if columns of the same
 * name became different fields.
 */
export function rememberedOptions(
  columns: readonly string[],
  mappings: readonly ImportMapping[],
  { owner, targets, options }: { owner: string; targets: Map<string, Target>; options: ColumnOptions },
): { options: ColumnOptions; notice: string } | undefined {
  const names = trimmed(columns)
  const header = JSON.stringify(names)
  const found = mappings.find(mapping => mapping.owner === owner && JSON.stringify(trimmed(mapping.header)) === header)
  if (!found) return undefined
  const fields = new Map(names.map((name, index) => [name, found.fields[index] ?? null]))
  if (names.some((name, index) => fields.get(name) !== (found.fields[index] ?? null))) return undefined
  const isOpen = (name: string) => !options.map.has(name) && !options.ignore.includes(name)
  const open = [...fields].filter(([name]) => isOpen(name))
  // A field may have been archived since the mapping.
  const mapped = open.flatMap(([name, field]) =>
    field !== null && findTarget(field, targets) ? [[name, field] as const] : [],
  )
  const ignored = open.flatMap(([name, field]) => (field === null ? [name] : []))
  const notice =
    `Read the columns as ${found.actor} did on ${found.saved_at.slice(0, 10)}: ` +
    `${mapped.map(([name, field]) => `${name} as ${field}`).join(', ')}${ignored.length > 0 ? `; ignored ${ignored.join(', ')}` : ''}. ` +
    'Use --no-mapping to read them by their names.'
  return {
    options: { ...options, map: new Map([...options.map, ...mapped]), ignore: [...options.ignore, ...ignored] },
    notice,
  }
}
