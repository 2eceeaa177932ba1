import { parseSync } from 'libpg-query'

/** A node of PostgreSQL's syntax tree: its fields, by name. A node inside of a list is wrapped: `{ColumnRef: {…}}`. */
export type Tree = { [field: string]: unknown }

/** Parses an SQL text. Returns its commands, each as `{SelectStmt: {…}}`. Throws a SqlError. `loadModule()` must have resolved. */
export function parseCommands(text: string): Tree[] {
  const { stmts = [] } = parseSync(text) as { stmts?: { stmt: Tree }[] }
  return stmts.map(({ stmt }) => stmt)
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The fields of `value` if it is a node of this kind: of `{ColumnRef: {…}}`, those of the inner object. */
export function nodeOf(value: unknown, kind: string): Tree | undefined {
  const inner = isTree(value) ? value[kind] : undefined
  return isTree(inner) ? inner : undefined
}

/** The elements of a list, or none. */
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Calls `see` with each node below `value` and its kind. It does not descend into a node for which `see` returns false. */
export function walk(value: unknown, see: (kind: string, node: Tree) => boolean | undefined): void {
  if (Array.isArray(value)) for (const item of value) walk(item, see)
  if (!isTree(value)) return
  for (const [field, child] of Object.entries(value)) {
    if (/^[A-Z]/.test(field) && isTree(child) && see(field, child) === false) continue
    walk(child, see)
  }
}

/** The nodes of a kind below `value`. With `stopAt`, not those inside of a node of these kinds. */
export function findAll(value: unknown, kind: string, stopAt: readonly string[] = []): Tree[] {
  const found: Tree[] = []
  walk(value, (at, node) => {
    if (at === kind) found.push(node)
    return !stopAt.includes(at)
  })
  return found
}

/** The parts of a name: `['e', 'organization_id']` for `e.organization_id`, and `['*']` for a star. */
export const partsOf = (column: Tree): string[] =>
  listOf(column.fields).map(field => (nodeOf(field, 'String')?.sval as string | undefined) ?? '*')

/** The name of a function, without its schema. */
export const functionOf = (call: Tree): string => nodeOf(listOf(call.funcname).at(-1), 'String')?.sval as string

/** The expression inside of casts. */
export function withoutCasts(value: unknown): unknown {
  const cast = nodeOf(value, 'TypeCast')
  return cast ? withoutCasts(cast.arg) : value
}
