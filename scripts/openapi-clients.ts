// Generates clients from the OpenAPI document in a temporary folder, as docs/api.md describes it, and fails on a warning.
// It installs both generators from npm and PyPI, so it needs the network and Python 3.10 or later, and is not part of the gate.
//   npm run openapi:clients

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openApiDocument } from '../src/app.ts'
import { loadConfig } from '../src/config.ts'

// openapi-typescript 7 needs TypeScript 5, and kith is checked by TypeScript 7: hence no development dependency.
const npmPackages = ['openapi-typescript@7.13.0', 'typescript@5.9.3']
const pythonPackages = ['openapi-python-client==0.29.1', 'ruff']
// The generator knows no NDJSON. As bytes, a stream is a file.
const pythonConfig = 'content_type_overrides:\n  application/x-ndjson: application/octet-stream\n'

const folder = mkdtempSync(join(tmpdir(), 'kith-clients-'))
const at = (path: string) => join(folder, path)

/** Runs a command in the folder. Throws with its output if it fails, or if its output has a warning. */
function run(command: string, ...parameters: string[]): void {
  const PATH = `${at('python/bin')}:${at('node_modules/.bin')}:${process.env.PATH}`
  const options = { cwd: folder, encoding: 'utf8', env: { ...process.env, PATH } } as const
  const { status, error, stdout, stderr } = spawnSync(command, parameters, options)
  if (error) throw error
  const output = stdout + stderr
  if (status !== 0 || /warning/i.test(output)) throw new Error(`${[command, ...parameters].join(' ')}\n${output}`)
}

try {
  const document = openApiDocument({ config: loadConfig({}) })
  const operations = Object.values(document.paths).flatMap(methods => Object.keys(methods)).length
  writeFileSync(at('openapi.json'), JSON.stringify(document))

  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', folder, ...npmPackages])
  run('openapi-typescript', 'openapi.json', '--output', 'kith.ts')
  run('tsc', '--noEmit', '--strict', 'kith.ts')
  console.log('openapi-typescript: the types of all operations, accepted by TypeScript')

  writeFileSync(at('config.yaml'), pythonConfig)
  execFileSync('python3', ['-m', 'venv', at('python')])
  execFileSync(at('python/bin/pip'), ['install', '--quiet', '--disable-pip-version-check', ...pythonPackages])
  const options = ['--path', 'openapi.json', '--config', 'config.yaml', '--output-path', 'client', '--fail-on-warning']
  run('openapi-python-client', 'generate', ...options)
  const files = readdirSync(at('client'), { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.py'))
  const modules = files.map(file =>
    file
      .slice(0, -'.py'.length)
      .replaceAll('/', '.')
      .replace(/\.__init__$/, ''),
  )
  const endpoints = modules.filter(name => /\.api\.\w+\.\w+$/.test(name)).length
  if (endpoints !== operations) throw new Error(`${endpoints} of ${operations} operations have a module`)
  writeFileSync(at('client/import_all.py'), modules.map(name => `import ${name}\n`).join(''))
  run('python', 'client/import_all.py')
  console.log(`openapi-python-client: ${endpoints} operations in ${files.length} files, accepted by Python`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
