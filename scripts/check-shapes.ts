import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { loadModule } from 'libpg-query'
import { copyAllSql } from '../src/entities/read/read-sql.ts'
import { type Exception, exceptions } from './check-shapes-exceptions.ts'
import { brokenRules, tablesOf } from './check-shapes-rules.ts'
import { parseCommands } from './check-shapes-tree.ts'
import { type Node, readSources, root, type Source, visit } from './source.ts'

// kith's statements run on one PostgreSQL and on Citus, which routes each to the shard of its organization. Citus refuses some
// shapes, and answers others wrongly. This check finds them without a cluster, in the syntax tree that PostgreSQL's own parser gives.
// The conditions that src/filters composes for each request are not seen here.

/** A statement of the service. */
export type Found = { path: string; name: string; text: string }

/**
 * Checks the statements against the rules. Returns a message for each violation, and for each exception that no statement needs.
 * `loadModule()` of libpg-query must have resolved.
 */
export function checkShapes(statements: Found[], schema: string, allowed: readonly Exception[]): string[] {
  const tables = tablesOf(parseCommands(schema))
  const unused = new Set(allowed)
  const messages = statements.flatMap(({ path, name, text }) =>
    brokenRules(parseCommands(text), tables).flatMap(({ rule, message }) => {
      const exception = allowed.find(item => item.rule === rule && item.statement === name)
      if (exception) unused.delete(exception)
      return exception ? [] : [`${path}: the statement ${name} ${message} (${rule})`]
    }),
  )
  for (const { rule, statement } of unused)
    messages.push(
      `scripts/check-shapes-exceptions.ts: ${statement} does not break "${rule}" any more: remove its exception`,
    )
  return messages
}

type Statement = { name: string; text: string }

const isStatement = (value: object): value is Statement =>
  'name' in value && typeof value.name === 'string' && 'text' in value && typeof value.text === 'string'

function statementsIn(value: unknown): Statement[] {
  if (typeof value !== 'object' || value === null) return []
  return isStatement(value) ? [value] : Object.values(value).flatMap(statementsIn)
}

/** Imports the sql files of the service. Returns the statements that they export. */
async function importStatements(): Promise<Found[]> {
  const paths = globSync(['src/**/*sql.ts', 'cli/**/*sql.ts'], { cwd: root }).sort()
  const found = paths.map(async path => {
    const exported = statementsIn({ ...(await import(pathToFileURL(join(root, path)).href)) })
    return exported.map(({ name, text }) => ({ path, name, text }))
  })
  const copying = copyAllSql(1, 0, '00000000-0000-0000-0000-000000000000')
  return [...(await Promise.all(found)).flat(), { path: 'src/entities/read/read-sql.ts', ...copying }]
}

/** The literal texts that other files of the service send: `statement('…', '…')` and `client.query('…')`. */
export function literalStatements(sources: Source[]): Found[] {
  const found: Found[] = []
  for (const source of sources) {
    if (!/^src\//.test(source.path) || /(sql|\.test)\.ts$/.test(source.path)) continue
    visit(source, node => {
      if (node.type !== 'CallExpression') return
      const callee = node.callee as Node & { name?: string; property?: { name?: string } }
      const [first, second] = node.arguments as Node[]
      const text =
        callee.name === 'statement' ? textOf(second) : callee.property?.name === 'query' ? textOf(first) : undefined
      if (text === undefined) return
      const name = callee.name === 'statement' ? textOf(first) : undefined
      found.push({ path: source.path, name: name || `"${text.slice(0, 40)}"`, text })
    })
  }
  return found
}

/** The text of a literal or of a template without expressions. */
function textOf(node: Node | undefined): string | undefined {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value
  const quasis = node?.type === 'TemplateLiteral' ? (node.quasis as { value: { cooked: string } }[]) : []
  return quasis.length === 1 ? quasis[0]!.value.cooked : undefined
}

if (import.meta.main) {
  await loadModule()
  const statements = [...(await importStatements()), ...literalStatements(readSources())]
  const messages = checkShapes(statements, readFileSync(join(root, 'migrations/schema.sql'), 'utf8'), exceptions)
  for (const message of messages) console.error(message)
  if (messages.length > 0) process.exitCode = 1
}
