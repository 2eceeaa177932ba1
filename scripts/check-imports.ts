import { posix } from 'node:path'
import { lineOf, type Node, readSources, report, type Source, type Violation, visit } from './source.ts'

/** The modules that own a noun, in columns. A module imports from the columns to its right, never from its own or the left. */
const columns = [
  ['people', 'records', 'schema', 'consent-pages'],
  ['jobs'],
  ['deliverability', 'identity', 'rights', 'segments'],
  ['queries', 'search', 'bulk'],
  ['entities'],
  ['consents', 'observed'],
  ['attributes', 'stacks', 'webhooks', 'ledger', 'sessions', 'roles', 'sql-views'],
  ['accesses'],
  ['changes'],
  ['organizations'],
  ['followers', 'idempotency', 'consent-links'],
]

/** The technical modules, which own no noun, and the modules that each may import. */
const technicalModules: Record<string, string[]> = {
  http: ['accesses', 'auth', 'idempotency', 'route', 'db'],
  auth: ['sessions', 'organizations', 'route', 'db'],
  route: ['db'],
  db: [],
  access: ['http', 'accesses', 'auth', 'sessions', 'organizations', 'route', 'db'],
  operations: [
    'http',
    'auth',
    'entities',
    'rights',
    'organizations',
    'webhooks',
    'followers',
    'instruments',
    'keys-at-rest',
    'route',
    'db',
  ],
  'keys-at-rest': ['auth', 'deliverability', 'webhooks', 'ledger', 'consent-links', 'db'],
  openapi: ['http', 'route'],
  assistants: ['http', 'route'],
  instruments: ['http', 'route', 'db'],
}

/** The technical modules that every module with a noun may import. */
const below = ['route', 'db']

/** The folders of entities/, in columns of the same meaning. Files beside the folders may import any, and be imported by any. */
const entityColumns = [['write'], ['past', 'read'], ['indexes']]

/** The top-level folders and the folders that each may import. A folder that is not listed may import any. */
const areas: Record<string, string[]> = {
  src: ['src', 'client', 'transfer'],
  cli: ['cli', 'src', 'client', 'transfer'],
  client: ['client'],
  transfer: ['transfer', 'client', 'src'],
  examples: ['examples', 'client'],
  console: ['console', 'client', 'transfer', 'cli'],
}

/** The files outside of its module that a sql file may import: the columns of a person's profile, the channels, and the people of the change log. */
const sharedSql = ['src/values/profile-fields.ts', 'src/values/channels.ts', 'src/changes/people-sql.ts']

/** The files of the command line that the console runs too: the sample shop. They use nothing of Node, as all of transfer/. */
const sharedWithConsole = ['cli/seed/definitions.ts', 'cli/seed/lines.ts', 'cli/seed/send-lines.ts']

/** The only file of the service that the console imports: the labels of the fields of people. */
const profileLabels = 'src/values/profile-labels.ts'

/** The files of the service that transfer/ imports, so that they are in the console too: the rules of values. */
const sharedWithTransfer = [
  'src/values/formats.ts',
  'src/values/instant.ts',
  'src/values/scalars.ts',
  'src/values/errors.ts',
]

/** The files of the client that the service imports: the formats that both read. They use nothing of Node and no package. */
const sharedWithService = ['distinct-members', 'ledger-text', 'ledger-proof'].map(name => `client/src/${name}.ts`)

/** The only file of the service that reads files of tables, by the rules that the command line and the console have. */
const tableReader = 'src/bulk/csv.ts'

/** The lock of the head of an organization, and the only files that take it: every change of an organization has their shape. */
const headLock = 'src/organizations/head.ts'
const lockingFiles = /^src\/(organizations\/change-organization|entities\/write\/(\w+\/)?\w+)\.ts$/

const entryPoints = ['src/process/app.ts', 'src/main.ts']
const environmentReaders =
  /^(src\/(process\/config|main)\.ts|vitest\.config\.ts|(cli|test|scripts|bench|examples)\/.*|.*\.test\.ts)$/
const emptyNames = ['utils', 'common', 'helpers', 'types', 'lib']
const allowedBarrels = ['client/index.ts']

/** A file, with its top-level folder and its module, if it is in a folder of src/. */
type File = { path: string; area: string; module: string | undefined; role: 'routes' | 'sql' | 'test' | 'other' }

type ImportRule = {
  message: (from: File, to: File) => string
  isBroken: (from: File, to: File) => boolean
}

/** The folders that every file may import: what concerns the process as a whole, and the rules of single values. They import no module. */
const shared = ['process', 'values']

const inModule = (file: File) => file.module !== undefined
const isEntryPoint = (file: File) => entryPoints.includes(file.path)

/** The import rules. Only the first broken rule of an import is reported. Tests may import any file. */
const rules: ImportRule[] = [
  {
    message: (from, to) => `${from.area}/ does not import ${to.path}: it imports only ${listed(areas[from.area]!)}`,
    isBroken: (from, to) =>
      areas[from.area]?.includes(to.area) === false && !(from.area === 'console' && to.path === profileLabels),
  },
  {
    message: (_, to) => `of the command line, the console runs only ${sharedWithConsole.join(', ')}, not ${to.path}`,
    isBroken: (from, to) => from.area === 'console' && to.area === 'cli' && !sharedWithConsole.includes(to.path),
  },
  {
    message: (_, to) => `of the service, transfer/ imports only ${sharedWithTransfer.join(', ')}, not ${to.path}`,
    isBroken: (from, to) => from.area === 'transfer' && to.area === 'src' && !sharedWithTransfer.includes(to.path),
  },
  {
    message: (_, to) => `of the client, the service imports only ${sharedWithService.join(', ')}, not ${to.path}`,
    isBroken: (from, to) => from.area === 'src' && to.area === 'client' && !sharedWithService.includes(to.path),
  },
  {
    message: (_, to) => `only ${tableReader} imports ${to.path}`,
    isBroken: (from, to) => from.area === 'src' && to.area === 'transfer' && from.path !== tableReader,
  },
  {
    message: () => 'no file imports a test',
    isBroken: (_, to) => to.area === 'src' && to.role === 'test',
  },
  {
    message: (_, to) =>
      `${to.path} is for changeOrganization (organizations/change-organization.ts): change an organization by it`,
    isBroken: (from, to) =>
      from.area === 'src' && from.role !== 'test' && to.path === headLock && !lockingFiles.test(from.path),
  },
  {
    message: (_, to) => `only app.ts and main.ts import routes, such as ${to.path}`,
    isBroken: (from, to) => from.area === 'src' && to.role === 'routes' && !isEntryPoint(from),
  },
  {
    message: (_, to) => `${to.path} is an entry point: only an entry point imports it`,
    isBroken: (from, to) => from.area === 'src' && isEntryPoint(to) && !isEntryPoint(from),
  },
  {
    message: (_, to) => `a file outside the modules does not import ${to.path}; only app.ts and main.ts do`,
    isBroken: (from, to) => from.area === 'src' && !inModule(from) && !isEntryPoint(from) && inModule(to),
  },
  {
    message: (_, to) =>
      `a sql file imports only db/, sql files of its module and ${sharedSql.join(', ')}, not ${to.path}`,
    isBroken: (from, to) =>
      from.role === 'sql' &&
      to.module !== 'db' &&
      !sharedSql.includes(to.path) &&
      !(to.role === 'sql' && to.module === from.module),
  },
  {
    message: (from, to) => `entities/${folderOf(from)}/ does not import entities/${folderOf(to)}/`,
    isBroken: (from, to) => {
      if (from.module !== 'entities' || to.module !== 'entities') return false
      const [own, other] = [from, to].map(file => entityColumns.findIndex(each => each.includes(folderOf(file)!)))
      return folderOf(from) !== folderOf(to) && own! >= 0 && other! >= 0 && other! <= own!
    },
  },
  {
    message: (from, to) =>
      `${from.module}/ does not import ${to.module}/: it imports ${listed(reachable(from.module!))}`,
    isBroken: (from, to) =>
      inModule(from) && inModule(to) && from.module !== to.module && !reachable(from.module!).includes(to.module!),
  },
]

/** The folder of a file within its module. */
const folderOf = ({ path }: File): string | undefined => path.split('/').slice(2, -1)[0]

function listed(folders: string[]): string {
  return folders.length === 0 ? 'no module' : folders.map(folder => `${folder}/`).join(', ')
}

/** The other modules that a module may import. */
function reachable(module: string): string[] {
  const column = columns.findIndex(modules => modules.includes(module))
  return technicalModules[module] ?? [...columns.slice(column + 1).flat(), ...below]
}

function fileOf(path: string): File {
  const [area, ...rest] = path.split('/')
  const name = posix.basename(path)
  const module = area === 'src' && rest.length > 1 && !shared.includes(rest[0]!) ? rest[0] : undefined
  const test = /\.test\.tsx?$/.test(name)
  const role = test ? 'test' : (/^(?:.*-)?(routes|sql)\.ts$/.exec(name)?.[1] as 'routes' | 'sql' | undefined)
  return { path, area: area!, module, role: role ?? 'other' }
}

/** Returns every violation of the import rules in the given files, in order of path and line. */
export function checkImports(sources: Source[]): Violation[] {
  const imports = new Map(sources.map(source => [source.path, importsOf(source)]))
  return [
    ...sources.flatMap(source => [...checkName(source), ...checkEnvironment(source), ...checkChannels(source)]),
    ...[...imports].flatMap(([path, found]) => checkRules(fileOf(path), found)),
    ...checkCycles(imports),
  ].sort((a, b) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1))
}

type Import = { line: number; target: string }

/** The files that a file imports, with type imports, re-exports and `import()`, without packages. */
function importsOf(source: Source): Import[] {
  const found: Import[] = []
  const importing = /^(Import(Declaration|Expression)|Export(Named|All)Declaration|TSImportType)$/
  visit(source, node => {
    const literal = importing.test(node.type) ? (node.source as (Node & { value: unknown }) | null) : null
    if (typeof literal?.value !== 'string' || !literal.value.startsWith('.')) return
    const target = posix.join(posix.dirname(source.path), literal.value)
    found.push({ line: lineOf(source.text, literal.start), target })
  })
  return found
}

function checkRules(from: File, imports: Import[]): Violation[] {
  if (from.role === 'test') return []
  return imports.flatMap(({ line, target }) => {
    const to = fileOf(target)
    const rule = rules.find(({ isBroken }) => isBroken(from, to))
    return rule ? [{ path: from.path, line, message: rule.message(from, to) }] : []
  })
}

function checkName({ path }: Source): Violation[] {
  const { module } = fileOf(path)
  const known = [...columns.flat(), ...Object.keys(technicalModules)]
  const messages = path
    .split('/')
    .map(segment => segment.replace(/(\.test)?\.tsx?$/, ''))
    .filter(name => emptyNames.includes(name))
    .map(name => `"${name}" says nothing: name the folder or file after its content`)
  if (/(^|\/)index\.tsx?$/.test(path) && !allowedBarrels.includes(path))
    messages.push('no barrel files: import the file itself')
  if (module !== undefined && !known.includes(module))
    messages.push(`the module ${module}/ is not listed in scripts/check-imports.ts: add it`)
  return messages.map(message => ({ path, line: 1, message }))
}

function checkEnvironment(source: Source): Violation[] {
  if (environmentReaders.test(source.path)) return []
  const found: Violation[] = []
  visit(source, node => {
    if (readsEnvironment(node))
      found.push({
        path: source.path,
        line: lineOf(source.text, node.start),
        message: 'only src/process/config.ts and the entry points read process.env: use the configuration',
      })
  })
  return found
}

/** The service derives everything about a channel from src/values/channels.ts, so a channel is added there alone. */
function checkChannels({ path, text }: Source): Violation[] {
  const { area, role } = fileOf(path)
  if (area !== 'src' || role === 'test' || path === 'src/values/channels.ts') return []
  return [...text.matchAll(/'sms'/g)].map(({ index }) => ({
    path,
    line: lineOf(text, index),
    message: "only src/values/channels.ts names the channel 'sms': derive from its table",
  }))
}

/** `process.env`, `process['env']`, `const { env } = process`, `import { env } from 'node:process'`. */
function readsEnvironment(node: Node): boolean {
  const { type, object, property, id, init, source, specifiers } = node as Node & Record<string, Named>
  if (type === 'MemberExpression') return isCalled(object, 'process') && isCalled(property, 'env')
  if (type === 'VariableDeclarator')
    return isCalled(init, 'process') && (id?.properties ?? []).some(({ key }) => isCalled(key, 'env'))
  if (type !== 'ImportDeclaration' || !/^(node:)?process$/.test(source?.value ?? '')) return false
  return (specifiers as unknown as Named[]).some(({ imported }) => isCalled(imported, 'env'))
}

type Named = { name?: string; value?: string; property?: Named; properties?: Named[]; key?: Named; imported?: Named }

/** True for `name`, `'name'` and `….name`. */
function isCalled(node: Named | null | undefined, name: string): boolean {
  return node?.name === name || node?.value === name || node?.property?.name === name
}

/** One violation for each import that closes a cycle of files. Type imports count too. */
function checkCycles(imports: Map<string, Import[]>): Violation[] {
  const found: Violation[] = []
  const done = new Set<string>()
  const follow = (path: string, trail: string[]) => {
    for (const { line, target } of done.has(path) ? [] : (imports.get(path) ?? [])) {
      const start = [...trail, path].indexOf(target)
      if (start < 0) follow(target, [...trail, path])
      else
        found.push({
          path,
          line,
          message: `circular imports: ${[...trail, path].slice(start).join(' → ')} → ${target}`,
        })
    }
    done.add(path)
  }
  for (const path of imports.keys()) follow(path, [])
  return found
}

if (import.meta.main) report(checkImports(readSources()))
