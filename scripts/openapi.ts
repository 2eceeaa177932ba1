// Lints the OpenAPI document and the AsyncAPI document of the service by the rules of redocly.yaml, or prints one on standard output.
//   node scripts/openapi.ts --check
//   node scripts/openapi.ts --print
//   node scripts/openapi.ts --print --async

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { asyncApiDocument, openApiDocument } from '../src/process/app.ts'
import { loadConfig } from '../src/process/config.ts'
import { root } from './source.ts'

// Telemetry and the check for updates are off, so the linter needs no network.
const offlineEnvironment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** Lints the documents and returns the exit status of the linter: 0 if it finds nothing. */
function lint(texts: Record<string, string>): number {
  const folder = mkdtempSync(join(tmpdir(), 'kith-openapi-'))
  try {
    const files = Object.keys(texts).map(name => join(folder, name))
    for (const file of files) writeFileSync(file, texts[basename(file)]!)
    const redocly = join(root, 'node_modules/.bin/redocly')
    const { status, error } = spawnSync(redocly, ['lint', ...files, '--config', join(root, 'redocly.yaml')], {
      stdio: 'inherit',
      env: { ...process.env, ...offlineEnvironment },
    })
    if (error) throw error
    return status ?? 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const services = { config: loadConfig({}) }
  const openApi = JSON.stringify(openApiDocument(services), null, 2)
  const asyncApi = JSON.stringify(asyncApiDocument(services), null, 2)
  if (process.argv.includes('--print')) console.log(process.argv.includes('--async') ? asyncApi : openApi)
  else process.exitCode = lint({ 'openapi.json': openApi, 'asyncapi.json': asyncApi })
}
