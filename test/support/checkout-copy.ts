import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkout } from './process.ts'

const leftOut = /^(\.git|node_modules|dist|images)$/

/** A copy of the checkout without git, which a test may change. It shares the installed packages with the checkout. */
export type CheckoutCopy = {
  path: string
  /** Replaces a text, which must be in the file. */
  edit(file: string, before: string, after: string): void
  write(file: string, text: string): void
  read(file: string): string
  /** Runs a program of Node in the copy, and returns its exit code with its output. */
  run(...words: string[]): Promise<{ code: number; output: string }>
  remove(): void
}

/** Copies the checkout. Its workspaces are the ones of the copy. */
export function copyCheckout(): CheckoutCopy {
  const path = mkdtempSync(join(tmpdir(), 'kith-checkout-'))
  cpSync(checkout, path, { recursive: true, filter: source => !leftOut.test(source.split('/').at(-1)!) })
  const packages = join(checkout, 'node_modules')
  mkdirSync(join(path, 'node_modules/@kith'), { recursive: true })
  for (const name of readdirSync(packages))
    if (name !== '@kith') symlinkSync(join(packages, name), join(path, 'node_modules', name))
  for (const name of ['client', 'console']) symlinkSync(join(path, name), join(path, 'node_modules/@kith', name))
  const read = (file: string) => readFileSync(join(path, file), 'utf8')
  const write = (file: string, text: string) => writeFileSync(join(path, file), text)
  return {
    path,
    read,
    write,
    edit(file, before, after) {
      const text = read(file)
      if (!text.includes(before)) throw new Error(`${file} does not have ${before}`)
      write(file, text.replace(before, after))
    },
    async run(...words) {
      const options = { cwd: path, maxBuffer: 50_000_000 }
      const ended = await promisify(execFile)(process.execPath, words, options).catch(error => error)
      return { code: ended.code ?? 0, output: ended.stdout + ended.stderr }
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
