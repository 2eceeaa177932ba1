import { posix } from 'node:path'
import { lineOf, type Node, readSources, report, type Source, type Violation, visit } from './source.ts'

/** Rooms of nouns in columns: a room imports from the columns to its right, never from its own or from the left. */
const columns = [
  ['people', 'records', 'schema'],
  ['filters', 'transfer'],
  ['entities'],
  ['relationships', 'consents'],
  ['attributes', 'stacks'],
  ['organizations'],
  ['changes'],
]

/** Rooms that know no noun, and the rooms each imports. */
const nounless: Record<string, string[]> = {
  http: ['auth', 'idempotency', 'db'],
  auth: ['organizations', 'changes', 'db'],
  idempotency: ['organizations', 'db'],
  db: [],
  openapi: ['http'],
  instruments: ['http', 'db'],
}

/** The folders beside src/, and the folders each imports; those not listed here are free. */
const areas: Record<string, string[]> = {
  src: ['src'],
  cli: ['cli', 'src', 'client'],
  client: ['client'],
  examples: ['examples', 'client'],
}

/** What rooms of nouns know of http/: its types anywhere, its values in their routes. */
const routeTable = 'src/http/pipeline/route.ts'

const entrances = ['src/app.ts', 'src/main.ts']
const environmentReaders =
  /^(src\/(config|main)\.ts|vitest\.config\.ts|(cli|test|scripts|bench|examples)\/.*|.*\.test\.ts)$/
const emptyNames = ['utils', 'common', 'helpers', 'types', 'lib']
const allowedBarrels = ['client/index.ts']

type Place = { path: string; area: string; room: string | undefined; role: 'routes' | 'sql' | 'test' | 'other' }

type Arrow = {
  sentence: (from: Place, to: Place) => string
  broken: (from: Place, to: Place, typeOnly: boolean) => boolean
}

const inRoom = (place: Place) => place.room !== undefined
const hasNoun = (place: Place) => inRoom(place) && nounless[place.room!] === undefined
const isEntrance = (place: Place) => entrances.includes(place.path)

/** What an import may not do; the first that is broken is reported. Tests import what they like. */
const arrows: Arrow[] = [
  {
    sentence: (from, to) => `${from.area}/ does not import ${to.path}: it imports only ${listed(areas[from.area]!)}`,
    broken: (from, to) => areas[from.area]?.includes(to.area) === false,
  },
  {
    sentence: () => 'a test is imported by nobody',
    broken: (_, to) => to.area === 'src' && to.role === 'test',
  },
  {
    sentence: (_, to) => `only app.ts and main.ts import routes, and ${to.path} is one`,
    broken: (from, to) => from.area === 'src' && to.role === 'routes' && !isEntrance(from),
  },
  {
    sentence: (_, to) => `${to.path} is an entrance: only an entrance imports it`,
    broken: (from, to) => from.area === 'src' && isEntrance(to) && !isEntrance(from),
  },
  {
    sentence: (_, to) => `a file outside the rooms does not import ${to.path}; only app.ts and main.ts do`,
    broken: (from, to) => from.area === 'src' && !inRoom(from) && !isEntrance(from) && inRoom(to),
  },
  {
    sentence: (_, to) => `a sql file imports only db/ and sql files of its room, not ${to.path}`,
    broken: (from, to) => from.role === 'sql' && to.room !== 'db' && !(to.role === 'sql' && to.room === from.room),
  },
  {
    sentence: (_, to) =>
      `of http/ a room imports only types of route.ts, and its routes what makes them, not ${to.path}`,
    broken: (from, to, typeOnly) =>
      hasNoun(from) && to.room === 'http' && !(to.path === routeTable && (typeOnly || from.role === 'routes')),
  },
  {
    sentence: (from, to) => `${from.room}/ does not import ${to.room}/: it imports ${listed(reachable(from.room!))}`,
    broken: (from, to) =>
      inRoom(from) &&
      inRoom(to) &&
      from.room !== to.room &&
      !(hasNoun(from) && to.room === 'http') &&
      !reachable(from.room!).includes(to.room!),
  },
]

function listed(folders: string[]): string {
  return folders.length === 0 ? 'no room' : folders.map(folder => `${folder}/`).join(', ')
}

/** The rooms a room imports freely, its own left out. */
function reachable(room: string): string[] {
  const column = columns.findIndex(rooms => rooms.includes(room))
  return nounless[room] ?? [...columns.slice(column + 1).flat(), 'db']
}

function placeOf(path: string): Place {
  const [area, ...rest] = path.split('/')
  const name = posix.basename(path)
  const test = /\.test\.tsx?$/.test(name)
  const role = test ? 'test' : (/^(?:.*-)?(routes|sql)\.ts$/.exec(name)?.[1] as 'routes' | 'sql' | undefined)
  return { path, area: area!, room: area === 'src' && rest.length > 1 ? rest[0] : undefined, role: role ?? 'other' }
}

/** Every violation of the arrows of the house in the given files, in order of path and line. */
export function checkImports(sources: Source[]): Violation[] {
  const imports = new Map(sources.map(source => [source.path, importsOf(source)]))
  return [
    ...sources.flatMap(source => [...checkName(source), ...checkEnvironment(source)]),
    ...[...imports].flatMap(([path, found]) => checkArrows(placeOf(path), found)),
    ...checkCycles(imports),
  ].sort((a, b) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1))
}

type Import = { line: number; target: string; typeOnly: boolean }

/** The files a file names in imports, type imports, re-exports and `import()`; packages are left out. */
function importsOf(source: Source): Import[] {
  const found: Import[] = []
  const importing = /^(Import(Declaration|Expression)|Export(Named|All)Declaration|TSImportType)$/
  visit(source, node => {
    const literal = importing.test(node.type) ? (node.source as (Node & { value: unknown }) | null) : null
    if (typeof literal?.value !== 'string' || !literal.value.startsWith('.')) return
    const typeOnly = node.type === 'TSImportType' || [node.importKind, node.exportKind].includes('type')
    const target = posix.join(posix.dirname(source.path), literal.value)
    found.push({ line: lineOf(source.text, literal.start), target, typeOnly })
  })
  return found
}

function checkArrows(from: Place, imports: Import[]): Violation[] {
  if (from.role === 'test') return []
  return imports.flatMap(({ line, target, typeOnly }) => {
    const to = placeOf(target)
    const arrow = arrows.find(({ broken }) => broken(from, to, typeOnly))
    return arrow ? [{ path: from.path, line, sentence: arrow.sentence(from, to) }] : []
  })
}

function checkName({ path }: Source): Violation[] {
  const { room } = placeOf(path)
  const known = [...columns.flat(), ...Object.keys(nounless)]
  const sentences = path
    .split('/')
    .map(segment => segment.replace(/(\.test)?\.tsx?$/, ''))
    .filter(name => emptyNames.includes(name))
    .map(name => `"${name}" says nothing: name the folder or file after what it is about`)
  if (/(^|\/)index\.tsx?$/.test(path) && !allowedBarrels.includes(path))
    sentences.push('no barrels: import the file itself')
  if (room !== undefined && !known.includes(room))
    sentences.push(`the room ${room}/ has no place in scripts/check-imports.ts: give it one`)
  return sentences.map(sentence => ({ path, line: 1, sentence }))
}

function checkEnvironment(source: Source): Violation[] {
  if (environmentReaders.test(source.path)) return []
  const found: Violation[] = []
  visit(source, node => {
    if (readsEnvironment(node))
      found.push({
        path: source.path,
        line: lineOf(source.text, node.start),
        sentence: 'only src/config.ts and the entrances read process.env: take what you need from the configuration',
      })
  })
  return found
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

/** True of `name`, `'name'` and `….name`. */
function isCalled(node: Named | null | undefined, name: string): boolean {
  return node?.name === name || node?.value === name || node?.property?.name === name
}

/** One violation for each import that closes a circle of files. Type imports count: a circle of types is a circle. */
function checkCycles(imports: Map<string, Import[]>): Violation[] {
  const found: Violation[] = []
  const done = new Set<string>()
  const follow = (path: string, trail: string[]) => {
    for (const { line, target } of done.has(path) ? [] : (imports.get(path) ?? [])) {
      const start = [...trail, path].indexOf(target)
      if (start < 0) follow(target, [...trail, path])
      else found.push({ path, line, sentence: `a circle: ${[...trail, path].slice(start).join(' → ')} → ${target}` })
    }
    done.add(path)
  }
  for (const path of imports.keys()) follow(path, [])
  return found
}

if (import.meta.main) report(checkImports(readSources()))
