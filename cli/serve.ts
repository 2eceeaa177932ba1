import { Command, InvalidArgumentError } from 'commander'

export function serveCommand(environment: NodeJS.ProcessEnv): Command {
  return new Command('serve')
    .description('run the service until a signal ends it')
    .option('--workers <count>', 'processes that serve, on one port', wholeNumber, 1)
    .addHelpText('after', '\nExamples:\n  PORT=8081 npm run -s kith -- serve\n  npm run -s kith -- serve --workers 2')
    .action(async ({ workers }: { workers: number }) => {
      // Loading the whole service takes 0.1 s more, which the other commands do without.
      const { serve } = await import('../src/main.ts')
      await serve(environment, { workers })
    })
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d?$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 99.')
  return Number(text)
}
