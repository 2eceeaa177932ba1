import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { root } from '../../scripts/source.ts'

/** These start a service, a PostgreSQL, or a process of the command line. */
const starters = ['service', 'database', 'postgres', 'process', 'command', 'embedded-service'].map(
  name => `test/support/${name}.ts`,
)

const importsOf = (file: string) =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/(?:from|import) '(\.[^']+)'/g)].map(([, path]) =>
    relative(root, join(root, dirname(file), path!)),
  )

/** Whether a test file, or a file of test/ or of tests beside it that it imports, starts one of them. */
function needsService(file: string, seen = new Set<string>()): boolean {
  if (starters.includes(file)) return true
  if (seen.has(file)) return false
  seen.add(file)
  const text = readFileSync(join(root, file), 'utf8')
  if (/node:child_process|startEmbedded|openDatabase\(/.test(text)) return file.endsWith('.test.ts') || /^(test|bench)\//.test(file)
  return importsOf(file).some(path => (path.startsWith('test/') || path.endsWith('.test.ts')) && needsService(path, seen))
}

/** The test files that need neither: rules, run in memory. */
export const unitTests = (patterns: string[]): string[] =>
  globSync(patterns, { cwd: root, exclude: path => path.includes('node_modules') })
    .filter(file => !needsService(file))
    .sort()
