import cluster from 'node:cluster'
import { ClusterRegistry, type Registry } from '@prometheus-io/client'

const requestType = 'kith scrape'
const responseType = 'kith scraped'
/** Longer than the library's own timeout for the workers, so that its more precise error arrives first. */
const patienceMs = 6_000

type Message = { type?: string; id?: number; text?: string; problem?: string }

/**
 * For the process that starts the workers: answers a worker's request for the metrics with those of all workers and of
 * this process.
 */
export function aggregateForWorkers(own: Registry): void {
  ClusterRegistry.setRegistries([own as never])
  const all = new ClusterRegistry()
  cluster.on('message', async (worker, message: Message) => {
    if (message?.type !== requestType) return
    const response = await all.clusterMetrics().then(
      text => ({ text }),
      (error: Error) => ({ problem: error.message }),
    )
    if (worker.isConnected()) worker.send({ type: responseType, id: message.id, ...response })
  })
}

/** For a worker: returns a function that requests the metrics of all workers from the starting process. It rejects if they are unavailable. */
export function scrapeThroughStarter(own: Registry): () => Promise<string> {
  ClusterRegistry.setRegistries([own as never])
  // The constructor registers this worker with the starting process, and answers its requests.
  void new ClusterRegistry()
  let lastId = 0
  return () => {
    lastId += 1
    return requestMetrics(lastId)
  }
}

function requestMetrics(id: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const settle = (message: Message) => {
      if (message?.type !== responseType || message.id !== id) return
      end()
      if (message.text === undefined) reject(new Error(message.problem))
      else resolve(message.text)
    }
    const timer = setTimeout(() => {
      end()
      reject(new Error('the metrics of the other workers did not arrive in time'))
    }, patienceMs)
    const end = () => {
      clearTimeout(timer)
      process.off('message', settle)
    }
    process.on('message', settle)
    process.send!({ type: requestType, id }, (error: Error | null) => {
      if (!error) return
      end()
      reject(error)
    })
  })
}
