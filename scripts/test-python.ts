// Runs the tests of the Python client, in clients/python, against a temporary service. They need Python 3.10 with httpx, pytest and
// cryptography, which Debian has as packages; PYTHON names another interpreter. Without one they are skipped. Parameters go to pytest.
//   npm run test:python -- -k receipts

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { root } from './source.ts'

const needed = 'import sys, cryptography, httpx, pytest; sys.exit(sys.version_info < (3, 10))'
const python = [process.env.PYTHON, 'python3'].find(
  each => each !== undefined && spawnSync(each, ['-c', needed]).status === 0,
)

if (python === undefined) {
  console.log(
    'The tests of the Python client are skipped: there is no Python 3.10 with httpx, pytest and cryptography.',
  )
  if (process.env.TEST_SUMMARY_FILE) writeFileSync(process.env.TEST_SUMMARY_FILE, '0 passed, 0 failed, 1 skipped\n')
} else {
  const command = [
    'scripts/with-service.ts',
    python,
    '-m',
    'pytest',
    'clients/python',
    '-q',
    '-rs',
    ...process.argv.slice(2),
  ]
  const env = { ...process.env, KITH_WEBHOOK_ALLOW: '127.0.0.0/8', PYTHONDONTWRITEBYTECODE: '1' }
  process.exitCode = spawnSync(process.execPath, command, { cwd: root, env, stdio: 'inherit' }).status ?? 1
}
