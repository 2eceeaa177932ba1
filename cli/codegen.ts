import { readFile, writeFile } from 'node:fs/promises'
import { Command } from 'commander'
import { createClient } from '../client/index.ts'
import { schemaText } from './codegen-text.ts'
import { tell } from './session.ts'

type CodegenOptions = { out: string; url?: string; token?: string; check?: true }

export function codegenCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('codegen')
    .description('write the types of an organization for the TypeScript client: createClient<Schema>(…)')
    .requiredOption('--out <file>', 'the file to write')
    .option('--url <url>', 'where the service is; else SERVICE_URL')
    .option('--token <token>', 'a token with the scope schema:read; else TOKEN')
    .option('--check', 'write nothing, and end with 1 when the file is stale')
    .addHelpText(
      'after',
      '\nExample:\n  npm run -s kith -- codegen --out schema.ts --url http://127.0.0.1:8080 --token "$TOKEN"',
    )
    .action((options: CodegenOptions) => generate(environment, options))
}

async function generate({ SERVICE_URL, TOKEN }: NodeJS.ProcessEnv, { out, check, ...given }: CodegenOptions) {
  const url = given.url ?? SERVICE_URL
  const token = given.token ?? TOKEN
  if (!url) throw new Error('Say where the service is, by --url or SERVICE_URL.')
  if (!token) throw new Error('A token with the scope schema:read is needed, by --token or TOKEN.')
  const text = schemaText(await createClient({ url, token }).schema.get())
  const stands = await readIfThere(out)
  if (check && stands !== text) throw new Error(`${out} is stale: the organization declares something else now.`)
  if (stands === text) return tell(`${out} is up to date`)
  await writeFile(out, text)
  tell(`wrote ${out}`)
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
