// Generates clients from the OpenAPI document in a temporary folder, as docs/api.md describes it, and fails on a warning of a generator
// that has none of its own. Each client that runs here creates a person and reads it, with the service of KITH_URL and KITH_TOKEN.
// It installs the generators from npm, PyPI, Maven Central and the Go module proxy, so it needs the network, Python 3.10 or later, Go and
// a JDK with Maven. It is not part of the gate. Names select clients.
//   npm run openapi:clients -- python go

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { openApiDocument } from '../src/process/app.ts'
import { loadConfig } from '../src/process/config.ts'

// openapi-typescript 7 needs TypeScript 5, and kith is checked by TypeScript 7: hence no development dependency.
const npmPackages = ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3', '@types/node@24']
const pythonPackages = ['openapi-python-client==0.29.1', 'ruff']
const openApiGenerator = '7.25.0'
const oapiCodegen = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
// The generator knows no NDJSON. As bytes, a stream is a file.
const pythonConfig = 'content_type_overrides:\n  application/x-ndjson: application/octet-stream\n'
const requests = new URL('./openapi-clients/', import.meta.url)

const folder = mkdtempSync(join(tmpdir(), 'kith-clients-'))
const at = (path: string) => join(folder, path)

type Settings = { cwd?: string; allowsWarnings?: boolean }

/** Runs a command in the folder and returns its output. Throws with it if the command fails, or if it has a warning. */
function run(command: string, parameters: string[], { cwd = folder, allowsWarnings = false }: Settings = {}): string {
  const PATH = `${at('python/bin')}:${at('node_modules/.bin')}:${at('bin')}:${process.env.PATH}`
  const env = { ...process.env, PATH, GOBIN: at('bin') }
  const { status, error, stdout, stderr } = spawnSync(command, parameters, {
    cwd,
    encoding: 'utf8',
    env,
    maxBuffer: 2 ** 28,
  })
  if (error) throw error
  const output = stdout + stderr
  if (status !== 0 || (!allowsWarnings && /warning/i.test(output)))
    throw new Error(`${[command, ...parameters].join(' ')}\n${output}`)
  return output
}

/** Copies a program of scripts/openapi-clients/ into the folder. */
function copyRequest(name: string, path: string): void {
  mkdirSync(at(join(path, '..')), { recursive: true })
  cpSync(new URL(name, requests), at(path))
}

const document = openApiDocument({ config: loadConfig({}) })
const operations = Object.values(document.paths).flatMap(methods => Object.keys(methods)).length

function generateWithOpenApiGenerator(language: string): void {
  const artifact = `org.openapitools:openapi-generator-cli:${openApiGenerator}`
  const jar = join(
    homedir(),
    `.m2/repository/org/openapitools/openapi-generator-cli/${openApiGenerator}/openapi-generator-cli-${openApiGenerator}.jar`,
  )
  if (!existsSync(jar)) run('mvn', ['-q', '-B', 'dependency:get', `-Dartifact=${artifact}`, '-Dtransitive=false'])
  const parts = 'models,apis,supportingFiles,modelDocs=false,apiDocs=false,modelTests=false,apiTests=false'
  const options = [
    'generate',
    '-g',
    language,
    '-i',
    'openapi.json',
    '-o',
    `generated/${language}`,
    '--global-property',
    parts,
  ]
  // The generator warns that OpenAPI 3.1 is new to it, and of examples that it does not use.
  run('java', ['-jar', jar, ...options], { allowsWarnings: true })
}

const clients: Record<string, () => string> = {
  'openapi-typescript': () => {
    run('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', folder, ...npmPackages])
    run('openapi-typescript', ['openapi.json', '--output', 'kith.ts'])
    copyRequest('request.ts', 'request.mts')
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--allowImportingTsExtensions', '--module', 'nodenext']
    run('tsc', [...options, '--types', 'node', 'kith.ts', 'request.mts'])
    return run(process.execPath, ['request.mts'])
  },
  'openapi-python-client': () => {
    writeFileSync(at('config.yaml'), pythonConfig)
    // The generator leaves out CSV with a warning. Without it, any other warning fails.
    writeFileSync(
      at('lines.json'),
      JSON.stringify(document, (key, value) => (key === 'text/csv' ? undefined : value)),
    )
    run('python3', ['-m', 'venv', at('python')])
    run('pip', ['install', '--quiet', '--disable-pip-version-check', ...pythonPackages])
    const options = ['--path', 'lines.json', '--config', 'config.yaml', '--output-path', 'client', '--fail-on-warning']
    run('openapi-python-client', ['generate', ...options])
    const endpoints = importAll(at('client')).filter(name => /\.api\.\w+\.\w+$/.test(name)).length
    if (endpoints !== operations) throw new Error(`${endpoints} of ${operations} operations have a module`)
    copyRequest('openapi_python_client.py', 'client/request.py')
    return run('python', ['client/request.py'])
  },
  python: () => {
    generateWithOpenApiGenerator('python')
    run('python3', ['-m', 'venv', at('venv')])
    const python = at('venv/bin/python')
    run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', './generated/python'])
    copyRequest('request.py', 'request.py')
    return run(python, ['request.py'])
  },
  go: () => {
    generateWithOpenApiGenerator('go')
    copyRequest('request.go', 'generated/go/request/main.go')
    run('go', ['mod', 'tidy'], { cwd: at('generated/go') })
    run('go', ['build', './...'], { cwd: at('generated/go') })
    return run('go', ['run', './request'], { cwd: at('generated/go') })
  },
  java: () => {
    generateWithOpenApiGenerator('java')
    const settings = { cwd: at('generated/java'), allowsWarnings: true }
    run('mvn', ['-q', '-B', 'compile', 'dependency:build-classpath', '-Dmdep.outputFile=classpath'], settings)
    copyRequest('Request.java', 'generated/java/Request.java')
    const classpath = `target/classes:${readFileSync(at('generated/java/classpath'), 'utf8').trim()}`
    return run('java', ['-cp', classpath, 'Request.java'], settings)
  },
  'oapi-codegen': () => {
    run('go', ['install', oapiCodegen])
    mkdirSync(at('oapi'))
    writeFileSync(at('oapi/config.yaml'), 'package: kith\ngenerate: {models: true, client: true}\noutput: kith.go\n')
    writeFileSync(at('oapi/go.mod'), 'module kith\n\ngo 1.24\n')
    run('oapi-codegen', ['-config', 'config.yaml', '../openapi.json'], { cwd: at('oapi') })
    copyRequest('oapi_codegen.go', 'oapi/request/main.go')
    run('go', ['mod', 'tidy'], { cwd: at('oapi') })
    return run('go', ['run', './request'], { cwd: at('oapi') })
  },
}

/** Imports every module of a Python package, and returns their names. */
function importAll(path: string): string[] {
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.py'))
  const modules = files.map(file =>
    file
      .slice(0, -'.py'.length)
      .replaceAll('/', '.')
      .replace(/\.__init__$/, ''),
  )
  writeFileSync(join(path, 'import_all.py'), modules.map(name => `import ${name}\n`).join(''))
  run('python', [join(path, 'import_all.py')])
  return modules
}

try {
  writeFileSync(at('openapi.json'), JSON.stringify(document))
  const selected = process.argv.slice(2)
  for (const [name, makeRequest] of Object.entries(clients)) {
    if (selected.length > 0 && !selected.includes(name)) continue
    const shown = makeRequest().trim().split('\n').at(-1)
    if (shown !== 'Ada') throw new Error(`${name}: the first name of the person it read is ${shown}`)
    console.log(`${name}: created a person and read it`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
