import { wholeNumber } from './command.ts'
import { newCommand } from './kith-command.ts'

export const serveCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(environment, 'serve', 'Runs the service until a signal ends it.')
    .examples('PORT=8081 serve', 'serve --workers 2', 'serve --json 2>> kith.log')
    .option('--workers <count>', 'Processes that serve on one port.', { parse: wholeNumber(1, 99), default: 1 })
    .action(async options => {
      // The whole service takes 0.5 s to load. The help does not need it.
      const { serve } = await import('../src/main.ts')
      await serve(environment, options)
    })
