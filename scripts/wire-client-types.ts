import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './source.ts'

/**
 * The declarations of the client without comments, one module after the other. They are kept in a file, so that a change of what programs
 * compile against is seen when it is made.
 */
export function clientTypesText(): string {
  const folder = mkdtempSync(join(tmpdir(), 'kith-types-'))
  try {
    const words = ['--project', 'client', '--emitDeclarationOnly', '--outDir', folder]
    execFileSync(join(root, 'node_modules/.bin/tsc'), words, { cwd: root, stdio: 'inherit' })
    const modules = globSync('**/*.d.ts', { cwd: folder }).sort()
    return modules.map(path => `// ${path}\n${withoutComments(readFileSync(join(folder, path), 'utf8'))}`).join('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const withoutComments = (text: string) => text.replaceAll(/^[ \t]*\/\*\*.*?\*\/\n/gms, '')
