import type { Command } from 'commander'
import { newCommand, wholeNumber } from './command.ts'

export function serveCommand(environment: NodeJS.ProcessEnv): Command {
  const examples = ['PORT=8081 serve', 'serve --workers 2', 'serve --json 2>> kith.log']
  return newCommand('serve', 'Runs the service until a signal ends it.', examples)
    .option('--workers <count>', 'Processes that serve on one port.', wholeNumber(1, 99), 1)
    .action(async (options: { workers: number; json?: true }) => {
      // The whole service takes 0.5 s to load. The help does not need it.
      const { serve } = await import('../src/main.ts')
      await serve(environment, options)
    })
}
