import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, inject } from 'vitest'

const runFile = promisify(execFile)

/** Unpacks Chromium into TMPDIR. This variable makes the package unpack the libraries that a plain Debian lacks as well. */
const unpackScript = `import('@sparticuz/chromium').then(({ default: chromium }) => chromium.executablePath())`
const withLibraries = { AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' }

/**
 * Unpacks the Chromium of the package @sparticuz/chromium, once in a run, and returns its folder. It is complete when it
 * gets its name, so files that start together can share it.
 */
async function unpackChromium(): Promise<string> {
  const runFolder = inject('runFolder')
  const folder = join(runFolder, 'chromium')
  if (existsSync(folder)) return folder
  const unpacked = await mkdtemp(join(runFolder, 'chromium-'))
  await runFile(process.execPath, ['--input-type=module', '--eval', unpackScript], {
    cwd: import.meta.dirname,
    env: { ...process.env, ...withLibraries, TMPDIR: unpacked },
  })
  // Pages look the same wherever the tests run, because the only fonts are those of the package.
  const fonts = `<fontconfig><dir>${join(folder, 'fonts/fonts')}</dir><cachedir>${join(folder, 'font-cache')}</cachedir></fontconfig>`
  await writeFile(join(unpacked, 'fonts.conf'), fonts)
  await rename(unpacked, folder).catch(async error => {
    if (!existsSync(folder)) throw error
    await rm(unpacked, { recursive: true })
  })
  return folder
}

/** A browser for the tests of a file. */
export type TestBrowser = {
  /** Opens an empty page in a context of its own, which has no cookies of others. Closes it after `work`. */
  open<T>(work: (page: Page, requested: string[]) => Promise<T>, options?: BrowserContextOptions): Promise<T>
}

/** Starts a Chromium before the tests of the file, and closes it after them. */
export function useBrowser(): TestBrowser {
  let browser: Browser | undefined
  beforeAll(async () => {
    const folder = await unpackChromium()
    browser = await chromium.launch({
      executablePath: join(folder, 'chromium'),
      // The sandbox needs rights that a container or root often lacks. The pages are the service's own.
      chromiumSandbox: false,
      env: {
        HOME: folder,
        TMPDIR: folder,
        FONTCONFIG_FILE: join(folder, 'fonts.conf'),
        LD_LIBRARY_PATH: join(folder, 'al2023/lib'),
      },
    })
  }, 120_000)
  afterAll(() => browser?.close())
  return {
    open: async (work, options = {}) => {
      const context: BrowserContext = await browser!.newContext({ locale: 'en-GB', ...options })
      try {
        const page = await context.newPage()
        const requested: string[] = []
        page.on('request', request => requested.push(request.url()))
        return await work(page, requested)
      } finally {
        await context.close()
      }
    },
  }
}
