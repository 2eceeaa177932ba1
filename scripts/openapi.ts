// Lints the OpenAPI document of the service by the rules of redocly.yaml, or prints it on standard output.
//   node scripts/openapi.ts --check
//   node scripts/openapi.ts --print

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openApiDocument } from '../src/process/app.ts'
import { loadConfig } from '../src/process/config.ts'
import { root } from './source.ts'

// Telemetry and the check for updates are off, so the linter needs no network.
const offlineEnvironment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** Lints the document and returns the exit status of the linter: 0 if it finds nothing. */
function lint(text: string): number {
  const folder = mkdtempSync(join(tmpdir(), 'kith-openapi-'))
  try {
    const file = join(folder, 'openapi.json')
    writeFileSync(file, text)
    const redocly = join(root, 'node_modules/.bin/redocly')
    const { status, error } = spawnSync(redocly, ['lint', file, '--config', join(root, 'redocly.yaml')], {
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
  const text = JSON.stringify(openApiDocument({ config: loadConfig({}) }), null, 2)
  if (process.argv.includes('--print')) console.log(text)
  else process.exitCode = lint(text)
}
