// Builds the two packages that are published and installed, and writes their tarballs to the given folder:
//   node scripts/pack.ts [folder]
// Node.js strips no types below node_modules, so the package `kith` has JavaScript, in the folders of the checkout (dist/).

import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix, relative, resolve, sep } from 'node:path'
import { rolldown } from 'rolldown'

type Manifest = { [member: string]: unknown; version: string; dependencies: Record<string, string> }

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
const require = createRequire(import.meta.url)

/** The files that are not made of TypeScript. */
const copied = [
  ...['LICENSE', 'README.md', 'CHANGELOG.md', 'migrations', 'console/dist', 'docs/dist', 'cli/import/profiles'],
  ...['kith', 'kith.service', 'alerts.yaml', 'grafana-dashboard.json', 'Caddyfile', 'nginx.conf'].map(
    name => `ops/${name}`,
  ),
]
/** The only files of Swagger UI that the service serves, 2 of 12 MB. */
const swaggerFiles = ['package.json', 'LICENSE', 'swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png']

/** Builds the package `kith` in dist/. */
async function build(): Promise<void> {
  rmSync(dist, { recursive: true, force: true })
  execFileSync('npm', ['run', '--silent', 'build', '--workspace', 'console'], { cwd: root, stdio: 'inherit' })
  execFileSync('npm', ['run', '--silent', 'docs'], { cwd: root, stdio: 'inherit' })
  execFileSync('npm', ['exec', '--', 'tsc', '--project', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
  // The service decompresses a file for a client that accepts no compressed form of it.
  const filter = (file: string) => !existsSync(`${file}.br`)
  for (const path of copied) cpSync(join(root, path), join(dist, path), { recursive: true, filter })
  const start = readFileSync(join(root, 'cli/kith.js'), 'utf8')
  writeFileSync(join(dist, 'cli/kith.js'), start.replace("'./main.ts'", "'./main.js'"), { mode: 0o755 })
  const swagger = dirname(require.resolve('swagger-ui-dist/package.json'))
  mkdirSync(join(dist, 'dependencies/swagger-ui-dist'), { recursive: true })
  for (const name of swaggerFiles) cpSync(join(swagger, name), join(dist, 'dependencies/swagger-ui-dist', name))
  await bundleDependencies(redirectImports())
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(packageManifest(), null, 2)}\n`)
}

/** The manifest of the package: it starts by one command, nothing imports it, and it depends on the embedded PostgreSQL alone. */
function packageManifest() {
  const { name, version, description, license, type, bin, engines, optionalDependencies } = manifest
  const exports = { './package.json': './package.json' }
  return { name, version, description, license, type, bin, engines, exports, optionalDependencies }
}

type Imports = { imported: Set<string>; required: Set<string> }

const packageOf = (specifier: string) => /^(@[^/]+\/)?[^/]+/.exec(specifier)![0]
const fileOf = (specifier: string, extension: string) => `${specifier.replace(/\.js$/, '')}${extension}`

/** Lets the compiled files import the bundled dependencies, and returns what they import. */
function redirectImports(): Imports {
  const imports: Imports = { imported: new Set(), required: new Set() }
  for (const path of globSync('{cli,src,transfer,client}/**/*.js', { cwd: dist })) {
    const file = join(dist, path)
    const toRoot = posix.relative(dirname(path).replaceAll(sep, '/'), '.')
    const code = readFileSync(file, 'utf8')
    const redirected = code.replaceAll(
      /(\bfrom |\bimport\(|\brequire\(|\brequire\.resolve\()'([^'.][^']*)'/g,
      (text, before: string, specifier: string) => {
        if (!Object.hasOwn(manifest.dependencies, packageOf(specifier))) return text
        if (specifier.startsWith('swagger-ui-dist')) return `${before}'${toRoot}/dependencies/${specifier}'`
        const isRequired = before === 'require('
        imports[isRequired ? 'required' : 'imported'].add(specifier)
        return `${before}'${toRoot}/dependencies/${fileOf(specifier, isRequired ? '.cjs' : '.js')}'`
      },
    )
    if (redirected !== code) writeFileSync(file, redirected)
  }
  return imports
}

/**
 * Writes what the dependencies have that the program uses, with their licences, to dist/dependencies. Installed as packages they would
 * take 93 MB.
 */
async function bundleDependencies({ imported, required }: Imports): Promise<void> {
  const names = new Map<string, string[]>()
  for (const specifier of imported)
    names.set(
      specifier,
      Object.keys(await import(specifier)).filter(name => /^[\w$]+$/.test(name)),
    )
  const asModules = await bundle(imported, '.js', specifier => `export { ${names.get(specifier)} } from '${specifier}'`)
  const asCommon = await bundle(required, '.cjs', specifier => `module.exports = require('${specifier}')`)
  const folders = new Set([...asModules, ...asCommon].map(packageFolderOf).filter(folder => folder !== undefined))
  writeFileSync(join(dist, 'dependencies/LICENSES.txt'), [...folders].sort().map(licenseOf).join('\n'))
}

/** Bundles dependencies, each into a file of its own beside those that several share. Returns the files they are made of. */
async function bundle(specifiers: Set<string>, extension: string, entry: (specifier: string) => string) {
  const entries = new Map(
    [...specifiers].map((specifier, index) => [join(root, `entry-${index}${extension}`), specifier]),
  )
  const bundled = await rolldown({
    input: Object.fromEntries([...entries].map(([id, specifier]) => [fileOf(specifier, ''), id])),
    platform: 'node',
    tsconfig: false,
    // Its absence is what the driver of PostgreSQL expects.
    external: ['pg-native'],
    plugins: [
      {
        name: 'entries',
        resolveId: id => (entries.has(id) ? id : null),
        load: id => (entries.has(id) ? entry(entries.get(id)!) : null),
      },
    ],
  })
  const { output } = await bundled.write({
    dir: join(dist, 'dependencies'),
    format: extension === '.js' ? 'esm' : 'cjs',
    entryFileNames: `[name]${extension}`,
    chunkFileNames: `shared/[name]-[hash]${extension}`,
  })
  return output.flatMap(file => (file.type === 'chunk' ? file.moduleIds : [])).filter(id => !entries.has(id))
}

function packageFolderOf(file: string): string | undefined {
  const [, folder] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file) ?? []
  return folder
}

/** The name, version and licence of a package, as its licence asks. */
function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const [file] = globSync('{LICENSE,LICENCE,license,License}*', { cwd: folder })
  const text = file ? readFileSync(join(folder, file), 'utf8').trim() : ''
  return `${name} ${version} (${license})\n\n${text}\n${'-'.repeat(80)}\n`
}

await build()
const target = resolve(process.argv[2] ?? root)
for (const folder of [dist, join(root, 'client')]) {
  if (!existsSync(target)) mkdirSync(target, { recursive: true })
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', target], { cwd: folder })
  const [{ filename, size, unpackedSize }] = JSON.parse(String(packed))
  console.log(`${relative(process.cwd(), join(target, filename))}: ${size} bytes, ${unpackedSize} unpacked`)
}
