-- The 4,151 queries of sf1.yaml in SQL: `workload: [{sql_file: sf1.sql}]` over the same domain asks the same.
-- A race is a mask of six bits; `alone` is 0 where it has none or several.

-- P1: total
SELECT COUNT(*) FROM persons;

-- P3: race, and the total
SELECT CASE WHEN bit_count(race) = 1 THEN race ELSE 0 END AS alone, COUNT(*) FROM persons
  GROUP BY ROLLUP (alone);

-- P4: hispanic, and the total
SELECT hispanic, COUNT(*) FROM persons GROUP BY ROLLUP (hispanic);

-- P5: hispanic by race, hispanic, and the total
SELECT hispanic, CASE WHEN bit_count(race) = 1 THEN race ELSE 0 END AS alone, COUNT(*) FROM persons
  GROUP BY ROLLUP (hispanic, alone);

-- P8: every mask with a race, exactly 1 to 6 races, two or more, and the total
SELECT race, COUNT(*) FROM persons WHERE race > 0 GROUP BY race;
SELECT bit_count(race) AS races, COUNT(*) FROM persons WHERE race > 0 GROUP BY races;
SELECT COUNT(*) FROM persons WHERE bit_count(race) >= 2;
SELECT COUNT(*) FROM persons;

-- P9: hispanic, not hispanic by race as in P8, and the total
SELECT race, COUNT(*) FROM persons WHERE race > 0 AND hispanic = 'no' GROUP BY race;
SELECT bit_count(race) AS races, COUNT(*) FROM persons WHERE race > 0 AND hispanic = 'no' GROUP BY races;
SELECT COUNT(*) FROM persons WHERE bit_count(race) >= 2 AND hispanic = 'no';
SELECT hispanic, COUNT(*) FROM persons GROUP BY ROLLUP (hispanic);

-- P10: race of adults as in P8, and adults
SELECT race, COUNT(*) FROM persons WHERE race > 0 AND age >= 18 GROUP BY race;
SELECT bit_count(race) AS races, COUNT(*) FROM persons WHERE race > 0 AND age >= 18 GROUP BY races;
SELECT COUNT(*) FROM persons WHERE bit_count(race) >= 2 AND age >= 18;
SELECT COUNT(*) FROM persons WHERE age >= 18;

-- P11: of adults hispanic, not hispanic by race as in P8, and all
SELECT race, COUNT(*) FROM persons WHERE race > 0 AND age >= 18 AND hispanic = 'no' GROUP BY race;
SELECT bit_count(race) AS races, COUNT(*) FROM persons WHERE race > 0 AND age >= 18 AND hispanic = 'no'
  GROUP BY races;
SELECT COUNT(*) FROM persons WHERE bit_count(race) >= 2 AND age >= 18 AND hispanic = 'no';
SELECT hispanic, COUNT(*) FROM persons WHERE age >= 18 GROUP BY ROLLUP (hispanic);

-- P12: sex by age, sex, and the total
SELECT sex, CASE WHEN age <= 4 THEN 4 WHEN age <= 9 THEN 9 WHEN age <= 14 THEN 14 WHEN age <= 17 THEN 17
         WHEN age <= 19 THEN 19 WHEN age <= 20 THEN 20 WHEN age <= 21 THEN 21 WHEN age <= 24 THEN 24
         WHEN age <= 29 THEN 29 WHEN age <= 34 THEN 34 WHEN age <= 39 THEN 39 WHEN age <= 44 THEN 44
         WHEN age <= 49 THEN 49 WHEN age <= 54 THEN 54 WHEN age <= 59 THEN 59 WHEN age <= 61 THEN 61
         WHEN age <= 64 THEN 64 WHEN age <= 66 THEN 66 WHEN age <= 69 THEN 69 WHEN age <= 74 THEN 74
         WHEN age <= 79 THEN 79 WHEN age <= 84 THEN 84 ELSE 114 END AS up_to, COUNT(*)
  FROM persons
  GROUP BY ROLLUP (sex, up_to);

-- P12A-G: the same by race
SELECT CASE WHEN bit_count(race) = 1 THEN race ELSE 0 END AS alone,
    sex, CASE WHEN age <= 4 THEN 4 WHEN age <= 9 THEN 9 WHEN age <= 14 THEN 14 WHEN age <= 17 THEN 17
         WHEN age <= 19 THEN 19 WHEN age <= 20 THEN 20 WHEN age <= 21 THEN 21 WHEN age <= 24 THEN 24
         WHEN age <= 29 THEN 29 WHEN age <= 34 THEN 34 WHEN age <= 39 THEN 39 WHEN age <= 44 THEN 44
         WHEN age <= 49 THEN 49 WHEN age <= 54 THEN 54 WHEN age <= 59 THEN 59 WHEN age <= 61 THEN 61
         WHEN age <= 64 THEN 64 WHEN age <= 66 THEN 66 WHEN age <= 69 THEN 69 WHEN age <= 74 THEN 74
         WHEN age <= 79 THEN 79 WHEN age <= 84 THEN 84 ELSE 114 END AS up_to, COUNT(*)
  FROM persons
  GROUP BY alone, ROLLUP (sex, up_to);

-- P12H: the same of hispanic persons
SELECT sex, CASE WHEN age <= 4 THEN 4 WHEN age <= 9 THEN 9 WHEN age <= 14 THEN 14 WHEN age <= 17 THEN 17
         WHEN age <= 19 THEN 19 WHEN age <= 20 THEN 20 WHEN age <= 21 THEN 21 WHEN age <= 24 THEN 24
         WHEN age <= 29 THEN 29 WHEN age <= 34 THEN 34 WHEN age <= 39 THEN 39 WHEN age <= 44 THEN 44
         WHEN age <= 49 THEN 49 WHEN age <= 54 THEN 54 WHEN age <= 59 THEN 59 WHEN age <= 61 THEN 61
         WHEN age <= 64 THEN 64 WHEN age <= 66 THEN 66 WHEN age <= 69 THEN 69 WHEN age <= 74 THEN 74
         WHEN age <= 79 THEN 79 WHEN age <= 84 THEN 84 ELSE 114 END AS up_to, COUNT(*)
  FROM persons WHERE hispanic = 'yes'
  GROUP BY ROLLUP (sex, up_to);

-- P12I: the same of persons white alone, not hispanic
SELECT sex, CASE WHEN age <= 4 THEN 4 WHEN age <= 9 THEN 9 WHEN age <= 14 THEN 14 WHEN age <= 17 THEN 17
         WHEN age <= 19 THEN 19 WHEN age <= 20 THEN 20 WHEN age <= 21 THEN 21 WHEN age <= 24 THEN 24
         WHEN age <= 29 THEN 29 WHEN age <= 34 THEN 34 WHEN age <= 39 THEN 39 WHEN age <= 44 THEN 44
         WHEN age <= 49 THEN 49 WHEN age <= 54 THEN 54 WHEN age <= 59 THEN 59 WHEN age <= 61 THEN 61
         WHEN age <= 64 THEN 64 WHEN age <= 66 THEN 66 WHEN age <= 69 THEN 69 WHEN age <= 74 THEN 74
         WHEN age <= 79 THEN 79 WHEN age <= 84 THEN 84 ELSE 114 END AS up_to, COUNT(*)
  FROM persons WHERE hispanic = 'no' AND race = 1
  GROUP BY ROLLUP (sex, up_to);

-- PCT12: sex by single years of age, sex, and the total
SELECT sex, CASE WHEN age < 100 THEN age ELSE age // 5 * 5 END AS from_age, COUNT(*)
  FROM persons
  GROUP BY ROLLUP (sex, from_age);

-- PCT12A-G: the same by race
SELECT CASE WHEN bit_count(race) = 1 THEN race ELSE 0 END AS alone,
    sex, CASE WHEN age < 100 THEN age ELSE age // 5 * 5 END AS from_age, COUNT(*)
  FROM persons
  GROUP BY alone, ROLLUP (sex, from_age);

-- PCT12H: the same of hispanic persons
SELECT sex, CASE WHEN age < 100 THEN age ELSE age // 5 * 5 END AS from_age, COUNT(*)
  FROM persons WHERE hispanic = 'yes'
  GROUP BY ROLLUP (sex, from_age);

-- PCT12I-O: the same by race, not hispanic
SELECT CASE WHEN bit_count(race) = 1 THEN race ELSE 0 END AS alone,
    sex, CASE WHEN age < 100 THEN age ELSE age // 5 * 5 END AS from_age, COUNT(*)
  FROM persons WHERE hispanic = 'no'
  GROUP BY alone, ROLLUP (sex, from_age);
