import cluster from 'node:cluster'
import { ClusterRegistry, type Registry } from '@prometheus-io/client'

const question = 'kith scrape'
const answer = 'kith scraped'
/** Longer than the library waits for the workers, which says then what is missing. */
const patienceMs = 6_000

type Message = { type?: string; id?: number; text?: string; problem?: string }

/**
 * In the process that starts the workers: answers whichever of them is asked for the metrics with those of all, and of
 * this process itself.
 */
export function gatherForWorkers(own: Registry): void {
  ClusterRegistry.setRegistries([own as never])
  const all = new ClusterRegistry()
  cluster.on('message', async (worker, message: Message) => {
    if (message?.type !== question) return
    const told = await all.clusterMetrics().then(
      text => ({ text }),
      (error: Error) => ({ problem: error.message }),
    )
    if (worker.isConnected()) worker.send({ type: answer, id: message.id, ...told })
  })
}

/** In a worker: what asks the process that started it for the metrics of all workers. Rejects when it cannot be told. */
export function scrapeThroughStarter(own: Registry): () => Promise<string> {
  ClusterRegistry.setRegistries([own as never])
  // Makes this worker known to its starter, and answers it.
  void new ClusterRegistry()
  let asked = 0
  return () => {
    asked += 1
    return ask(asked)
  }
}

function ask(id: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const settle = (message: Message) => {
      if (message?.type !== answer || message.id !== id) return
      end()
      if (message.text === undefined) reject(new Error(message.problem))
      else resolve(message.text)
    }
    const timer = setTimeout(() => {
      end()
      reject(new Error('the metrics of the other workers did not come in time'))
    }, patienceMs)
    const end = () => {
      clearTimeout(timer)
      process.off('message', settle)
    }
    process.on('message', settle)
    process.send!({ type: question, id }, (error: Error | null) => {
      if (!error) return
      end()
      reject(error)
    })
  })
}
