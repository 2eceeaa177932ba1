/** Sets an entry of a map that holds at most `most`: the one that came first makes room. */
export function setWithBound<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > most) map.delete(map.keys().next().value as K)
}
